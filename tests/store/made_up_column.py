"""A process in which jobs have one more option, ``color``, which is added to copies of
its declaration. Prints each way of a job on which it is lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any, Final
from uuid import UUID

# Before which line of a module it is declared, and how.
DECLARED: Final = {
    "django_jobqueue.store.columns": {
        '    JobColumn("replay_of"': '    _option("color", "text"),',
    },
    "django_jobqueue.domain.job_options": {
        '    "weight": _of_job(': '    "color": _of_job(problem=checks.text_problem),',
    },
    "django_jobqueue.enqueueing.options": {
        "    weight: int | None\n": "    color: str | None",
        "    weight: int | None = field": "    color: str | None = field(default=None)",
        "    weight: int | None = None": "    color: str | None = None",
    },
}
# What a migration that adds the column says of the trigger.
OF_FOLLOWERS: Final = {
    "CREATE FUNCTION": "CREATE OR REPLACE FUNCTION",
    "limit_key, weight)": "limit_key, weight, color)",
    "'weight')::integer)": "'weight')::integer, entry ->> 'color')",
}
RED: Final[Any] = {"color": "red"}
NULL: Final = "/dev/null"


class Copies(SourceFileLoader):
    """Loads such a copy in place of the module."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the copy."""
        source = Path(self.path).read_text()
        for before, line in DECLARED[fullname].items():
            assert source.count(before) == 1, before
            source = source.replace(before, f"{line}\n{before}")
        return compile(source, self.path, "exec")

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        """The spec of a module that is copied; of others None."""
        if name not in DECLARED:
            return None
        path = Path.cwd().joinpath(*name.split(".")).with_suffix(".py")
        return ModuleSpec(name, Copies(name, str(path)), origin=str(path))


def ways() -> dict[str, Callable[[], UUID]]:
    """The ways of a job; each returns the id of the queued one that there is then."""
    from django_jobqueue import enqueue, operations
    from django_jobqueue.contrib.schedules import due_schedules, schedule_rows
    from django_jobqueue.contrib.schedules.scheduler import fire
    from django_jobqueue.contrib.transfer import moving_jobs
    from django_jobqueue.contrib.transfer.dumping import checked_job, dump, load
    from django_jobqueue.domain.schedule_rules import every
    from django_jobqueue.search.selection import Selection, Table
    from django_jobqueue.store.connection import DjangoDatabase
    from tests.sample import jobs

    db = DjangoDatabase()
    red: Any = jobs.add.using(**RED)

    def replacing() -> UUID:
        jobs.render.enqueue(1)
        return jobs.render.using(**RED).enqueue(1).id

    def replayed() -> UUID:
        id = red.enqueue(1).id
        operations.cancel([id])
        return operations.replay(id).id

    def moved() -> UUID:
        id = red.enqueue(1).id
        names = dict.fromkeys(("name", "owner", "host", "identity"), "m")
        holder = moving_jobs.register(db, {**names, "pid": 1, "lease": 60})
        moving_jobs.hold(db, holder, [id])
        read = moving_jobs.read(db, holder, [id])
        moving_jobs.delete(db, holder, [id])
        moving_jobs.stage(db, holder, read.values())
        return id

    def dumped() -> UUID:
        id = red.enqueue(1).id
        lines = [
            line for line in dump(Selection(Table.QUEUED)) if line["id"] == str(id)
        ]
        db.run("DELETE FROM jobqueue_queuedjob WHERE id = %(id)s", {"id": id})
        return load(map(checked_job, lines))[0]

    def fired() -> UUID:
        red.at(every(days=1_000), name="red")(1)
        schedule_rows.declare(db)
        fire(db, due_schedules.due(db, ["red"]))  # plans it
        table = "jobqueue_schedules_schedule"
        db.run(f"UPDATE {table} SET next_at = now() WHERE name = 'red'")
        (id,) = fire(db, due_schedules.due(db, ["red"])).jobs
        return id

    def followed() -> UUID:
        follower = jobs.without_arguments.using(**RED)
        id = jobs.add.using(on_complete=follower).enqueue(1).id
        operations.cancel([id])
        query = "SELECT id FROM jobqueue_queuedjob WHERE follows = %(id)s"
        ((following,),) = db.fetch(query, {"id": id})
        return UUID(str(following))

    def many(handler: Any, *calls: Any) -> UUID:
        id: UUID = handler.using(**RED).enqueue_many(calls)[-1]
        return id

    return {
        "alone": lambda: red.enqueue(1).id,
        "by name": lambda: enqueue(jobs.add.name, {"a": 1}, **RED).id,
        "many": lambda: many(jobs.add, {"a": 1}, {"a": 2}),
        "with keys": lambda: many(jobs.write_keyed, {"journal": NULL}),
        "unique": lambda: jobs.add_alone.using(**RED).enqueue(1).id,
        "many unique": lambda: many(jobs.add_alone, {"a": 2}, {"a": 3}),
        "replacing": replacing,
        "debounced": lambda: (
            jobs.render.using(**RED, debounce=timedelta(minutes=1)).enqueue(2).id
        ),
        "in a window": lambda: jobs.remind.using(**RED).enqueue(1).id,
        "replayed": replayed,
        "moved": moved,
        "dumped and loaded": dumped,
        "fired by a schedule": fired,
        "following": followed,
    }


def main() -> None:
    """Add the column, try each way, and take all of it back."""
    import django
    from django.db import connection, transaction

    from django_jobqueue.migrations._sql import FOLLOW

    django.setup()
    with transaction.atomic(), connection.cursor() as cursor:
        for table in ("queued", "archived"):
            cursor.execute(f"ALTER TABLE jobqueue_{table}job ADD COLUMN color text")
        function = FOLLOW.partition("CREATE TRIGGER")[0]
        for text, other in OF_FOLLOWERS.items():
            assert text in function
            function = function.replace(text, other)
        cursor.execute(function)
        for way, go in ways().items():
            query = "SELECT color FROM jobqueue_queuedjob WHERE id = %s"
            cursor.execute(query, [go()])
            if (found := cursor.fetchall()) != [("red",)]:
                print(way, found)
        print("done")
        transaction.set_rollback(True)


if __name__ == "__main__":
    sys.meta_path.insert(0, Copies)  # type: ignore[arg-type]
    main()
