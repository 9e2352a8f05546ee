"""How much a newcomer has to read; ``make structure`` prints it."""

from __future__ import annotations

import pytest

from django_jobqueue.models import ArchivedJob
from django_jobqueue.rooms import rooms
from tests.architecture import structure
from tests.sample import jobs
from tests.support.hand_driven import Make

# Files of the engine with the same name, and why.
A_MODEL = "the model, and the statements on its table"
SHARED = {
    "database_identity.py": A_MODEL,
    "report.py": "the model, and what a handler calls",
    "metadata.py": "the statement, and who calls it for a handler",
    "progress.py": "the public functions, and the statement behind them",
}


@pytest.mark.dear
def test_the_sizes_of_the_rooms_are_known() -> None:
    rooms, engine = structure.rooms(), structure.engine()
    for name, size in rooms.items():
        print(f"{name or 'the root':12}{size.files:5} files{size.lines:8,} lines")
    print(f"{'engine':12}{engine.files:5} files{engine.lines:8,} lines")
    for name, number in structure.worth_a_look().items():
        print(f"{number} lines: {name}")
    sizes = {name: structure.part(name) for name in ("package", "core", "features")}
    structure.check_figures(
        **{f"files_of_the_{name}": size.files for name, size in sizes.items()},
        **{f"lines_of_the_{name}": size.lines for name, size in sizes.items()},
    )


def test_few_modules_are_at_the_root() -> None:
    found = structure.root_modules()
    print(f"\n{len(found)} modules at the root: {', '.join(found)}")
    structure.check_figures(modules_at_the_root=len(found))


def test_no_two_files_of_the_engine_share_a_name_without_a_reason() -> None:
    found = structure.shared_names()
    print(f"\n{len(found)} shared names: {found}")
    assert found.keys() <= SHARED.keys()


def test_the_path_of_a_job_crosses_few_files(make_worker: Make) -> None:
    jobs.add.enqueue(0)
    make_worker().work()  # what a process does once
    worker = make_worker()
    with structure.crossed() as enqueued:
        jobs.add.enqueue(1)
    with structure.crossed() as worked:
        worker.work()
    assert ArchivedJob.objects.filter(status="succeeded").count() == 2
    path = enqueued | worked
    print(f"\nenqueue(): {len(enqueued)} files, the worker: {len(worked)}; together")
    print(f"{len(path)} files of {structure.lines_of(path):,} lines:")
    print(", ".join(sorted(path)))
    structure.check_figures(
        files_on_a_jobs_path=len(path), lines_on_a_jobs_path=structure.lines_of(path)
    )


def test_a_small_project_has_few_tables_and_tabs() -> None:
    core = rooms()[0]
    tables = [model for model in core.get_models() if not model._meta.proxy]
    structure.check_figures(
        tables_of_the_core=len(tables), tabs_of_the_core=len(core.tabs)
    )
