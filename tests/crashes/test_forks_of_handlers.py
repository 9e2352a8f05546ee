"""Code of a project that forks within a worker: the child is no second worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group

from django_jobqueue.models import ArchivedJob
from tests.crashes.test_kills import children
from tests.embedded.programs import Run, program  # noqa: F401
from tests.sample import forks, jobs
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Start = Callable[..., RunWorkers]
BESIDE = 10  # jobs that are claimed ahead
IN_TRANSACTIONS = ("in_transaction", "in_block")
IN_THE_LOOP = ("in_coroutine", "in_coroutine_that_goes_on")
# Children of these come back to code of the project, and go on with it.
WITHIN_HANDLERS = ("in_handler", "inside_middleware", "in_sync_code", "in_other_thread")


def noted(journal: str) -> Counter[str]:
    """How often each thing was noted."""
    return Counter(" ".join(words) for words in jobs.notes(journal))


def ends_of(place: str) -> dict[str, int]:
    """How a child ends there, and the exit code that its parent sees."""
    codes = dict(forks.ENDS)
    if place in IN_TRANSACTIONS:
        codes["query"] = 1  # the transaction is that of the parent
    if place in IN_THE_LOOP:
        del codes["query"]  # async code does not
    if place == "in_coroutine_that_goes_on":
        codes = {end: code if end == "_exit" else 0 for end, code in codes.items()}
    return codes


def check(place: str, journal: str) -> None:
    """Everything was done once, by the parent."""
    made = {job.data["end"]: job for job in jobs_of(place)}
    for end, code in ends_of(place).items():
        job = made[end]
        assert (end, job.status, job.error_message) == (end, "succeeded", "")
        assert (end, job.result) == (end, {"code": code, "right": True})
    count = noted(journal)
    ends = list(ends_of(place))
    assert count["begun"] == count["went on"] == len(ends)
    assert [count[f"child {end}"] for end in ends] == [1] * len(ends)
    assert count["child came back"] == came_back(place)
    words = [f"{what} word {n}" for n in range(BESIDE) for what in ("start", "end")]
    assert [count[word] for word in words] == [1] * len(words)
    if place == "inside_middleware":
        assert count["after"] == len(ends)


def came_back(place: str) -> int:
    """Children that go on within the handler, as they may."""
    if place in WITHIN_HANDLERS:
        return 2  # after "return" and "query"
    return 1 if place in IN_TRANSACTIONS or place == "in_coroutine" else 0


def jobs_of(place: str) -> list[ArchivedJob]:
    """Those of this type."""
    return archived(job_type=f"tests.sample.forks.{place}")


def enqueue(place: str, journal: str) -> list[str]:
    """A job for each way in which a child can end, with others around it."""
    for number in range(BESIDE):
        jobs.write.enqueue(journal, f"word {number}")
    ends = list(ends_of(place))
    for end in ends:
        forks.PLACES[place].enqueue(journal, end)
    return ends


@pytest.mark.parametrize("place", forks.PLACES)
def test_a_child_that_comes_back_ends_and_its_parent_goes_on(
    runworkers: Start, journal: str, place: str
) -> None:
    run = runworkers("--threads", "1", SAMPLE_FORKS="1")
    (pid,) = run.started()
    jobs.add.enqueue_many([{"a": n} for n in range(30)])  # short: claimed ahead
    eventually(lambda: len(archived(status="succeeded")) == 30)
    ends = enqueue(place, journal)
    total = 30 + BESIDE + len(ends)
    eventually(lambda: len(archived()) == total, within=60, what=run.output)
    if "late" in place:
        eventually(lambda: sum(noted(journal)[f"child {end}"] for end in ends) == 6)
    check(place, journal)
    eventually(lambda: not children(pid), what="children to end")
    assert run.workers() == [pid]
    groups = Counter(name.rstrip("0123456789") for name in names())
    assert groups["of a fork "] == (ends_of(place).get("query") == 0)
    if place in IN_TRANSACTIONS:
        assert [groups[f"of {end}"] for end in ends] == [1] * len(ends)
    assert run.stop() == 0


def names() -> list[str]:
    """Those of the groups that were made."""
    return list(Group.objects.values_list("name", flat=True))


EMBEDDED = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
from tests.sample import forks
with django_jobqueue.worker(threads=1) as worker:
    worker.wait_idle(60)
print("the program ends")
"""


@pytest.mark.parametrize("place", [p for p in forks.PLACES if "receiver" not in p])
def test_a_child_that_comes_back_ends_also_in_an_embedded_worker(
    program: Run,  # noqa: F811
    journal: str,
    place: str,
) -> None:
    enqueue(place, journal)
    run = program(EMBEDDED)
    assert run.wait() == 0, run.output
    check(place, journal)
    assert run.output.count("the program ends") == 1


def test_processes_of_a_pool_work_query_and_end(runworkers: Start) -> None:
    run = runworkers("--threads", "1")
    run.started()
    forks.use_pool.enqueue()
    forks.terminate.enqueue()
    forks.see_signals_of_a_fork.enqueue()
    eventually(lambda: len(archived()) == 3, within=60, what=run.output)
    results = {job.job_type_id.rpartition(".")[2]: job.result for job in archived()}
    assert results == {
        "use_pool": {"doubled": [2 * n for n in range(10)], "right": True},
        "terminate": -15,
        "see_signals_of_a_fork": ["default_int_handler", "0", "0"],
    }
    assert run.stop() == 0
