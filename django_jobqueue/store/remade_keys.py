"""Keys that are made of the data of a job, made anew when these change."""

from __future__ import annotations

from typing import Final

# Of the job in this row, for these data; another key, which its caller gave, stays.
LIMIT_KEY: Final = """
coalesce((SELECT jobqueue_limit_key(type.limit_rule, {data}::jsonb)
            FROM jobqueue_jobtype AS type
           WHERE type.name = {row}.job_type AND type.limit_rule IS NOT NULL
             AND {row}.limit_key = jobqueue_limit_key(type.limit_rule, {row}.data)),
         {row}.limit_key)
"""
