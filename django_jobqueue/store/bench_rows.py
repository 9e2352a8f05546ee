"""Rows of ``jobqueue bench``: what its jobs left, and how much WAL there was."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database

BATCH: Final = 5_000  # rows deleted in a transaction

# Jobs that run are ended by their worker, or rescued, and deleted by the next call.
DELETE_QUEUED: Final = """
DELETE FROM jobqueue_queuedjob
 WHERE id = ANY (ARRAY (SELECT id FROM jobqueue_queuedjob
                         WHERE job_type = %(job_type)s AND status = 'queued'
                         LIMIT %(batch)s
                           FOR UPDATE SKIP LOCKED))
RETURNING id
"""
DELETE_ARCHIVED: Final = """
DELETE FROM jobqueue_archivedjob
 WHERE id = ANY (ARRAY (SELECT id FROM jobqueue_archivedjob
                         WHERE job_type = %(job_type)s
                         LIMIT %(batch)s))
RETURNING id
"""
DELETE_FIGURES: Final = (
    "DELETE FROM jobqueue_rollup WHERE job_type = %(job_type)s",
    "DELETE FROM jobqueue_total WHERE job_type = %(job_type)s",
    "DELETE FROM jobqueue_archivedcount WHERE job_type = %(job_type)s",
)
DELETE_TYPE: Final = """
DELETE FROM jobqueue_jobtype AS type
 WHERE type.name = %(job_type)s
   AND NOT EXISTS (SELECT FROM jobqueue_queuedjob AS job
                    WHERE job.job_type = type.name)
"""
LEFT: Final = """
SELECT (SELECT count(*) FROM jobqueue_queuedjob WHERE job_type = %(job_type)s)
       + (SELECT count(*) FROM (SELECT FROM jobqueue_archivedjob
                                 WHERE job_type = %(job_type)s LIMIT 1) AS one)
"""
WAL: Final = """
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
"""


def delete(db: Database, job_type: str) -> bool:
    """Delete the jobs of this type, queued and archived, its figures and its row;
    False if some are left, because they run."""
    params = {"job_type": job_type, "batch": BATCH}
    for statement in (DELETE_QUEUED, DELETE_ARCHIVED):
        while db.fetch(statement, params):
            pass
    for figures in DELETE_FIGURES:
        db.run(figures, params)
    if are_left(db, job_type):
        return False
    db.run(DELETE_TYPE, params)
    return True


def are_left(db: Database, job_type: str) -> bool:
    """Whether jobs of this type are there, waiting, running or archived."""
    return bool(db.fetch(LEFT, {"job_type": job_type})[0][0])


def wal_bytes(db: Database) -> int:
    """How many bytes of WAL the server has written, in all."""
    written: int = db.fetch(WAL)[0][0]
    return written
