"""Code of a project that forks within a worker: the child is no second worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group

from tests.crashes.seen import children
from tests.embedded.programs import Run
from tests.sample import forks, jobs
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.undone import check_each
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Start = Callable[..., RunWorkers]
BESIDE = 10  # jobs that are claimed ahead
IN_TRANSACTIONS = ("in_transaction", "in_block")
IN_THE_LOOP = ("in_coroutine", "in_coroutine_that_goes_on")
EACH_END = ("in_handler", "in_transaction", "in_coroutine")  # elsewhere, some ends
IN_SHORT = ["in_handler", "in_coroutine"]
# Children of these come back to code of the project, and go on with it.
WITHIN_HANDLERS = ("in_handler", "inside_middleware", "in_sync_code", "in_other_thread")


def noted(place: str, journal: str) -> Counter[str]:
    return Counter(" ".join(words) for words in jobs.notes(f"{journal}-{place}"))


def ends_of(place: str) -> dict[str, int]:
    """How a child ends there, and the exit code that its parent sees."""
    codes = dict(forks.ENDS)
    if place not in EACH_END:
        codes = {end: codes[end] for end in ("return", "raise", "query")}
    if place in IN_TRANSACTIONS:
        codes["query"] = 1  # the transaction is that of the parent
    if place in IN_THE_LOOP:
        del codes["query"]  # async code does not
    if place == "in_coroutine_that_goes_on":
        codes = dict.fromkeys(codes, 0)
    return codes


def came_back(place: str) -> int:
    """Children that go on within the handler, as they may."""
    if place in WITHIN_HANDLERS:
        return 2  # after "return" and "query"
    return 1 if place in IN_TRANSACTIONS or place == "in_coroutine" else 0


def enqueue(place: str, journal: str) -> None:
    """A job for each way in which a child can end, with others around it."""
    path = f"{journal}-{place}"
    jobs.write.enqueue_many(
        {"journal": path, "word": f"word {number}"} for number in range(BESIDE)
    )
    for end in ends_of(place):
        forks.PLACES[place].enqueue(path, end)


def check(place: str, journal: str) -> None:
    made = {
        job.data["end"]: (job.status, job.error_message, job.result)
        for job in archived(job_type=f"tests.sample.forks.{place}")
    }
    ends = ends_of(place)
    assert made == {
        end: ("succeeded", "", {"code": code, "right": True})
        for end, code in ends.items()
    }
    count = noted(place, journal)
    assert count["begun"] == count["went on"] == len(ends)
    assert [count[f"child {end}"] for end in ends] == [1] * len(ends)
    assert count["child came back"] == came_back(place)
    words = [f"{what} word {n}" for n in range(BESIDE) for what in ("start", "end")]
    assert [count[word] for word in words] == [1] * len(words)
    if place == "inside_middleware":
        assert count["after"] == len(ends)


def test_a_child_that_comes_back_ends_and_its_parent_goes_on(
    runworkers: Start, journal: str
) -> None:
    run = runworkers("--threads", "1", SAMPLE_FORKS="1")
    (pid,) = run.started()
    jobs.add.enqueue_many([{"a": n} for n in range(30)])  # short: claimed ahead
    eventually(lambda: not queued())

    def fork(place: str) -> None:
        enqueue(place, journal)
        eventually(lambda: not queued(), within=60, what=lambda: run.output)
        children_of = [f"child {end}" for end in ends_of(place)]
        eventually(lambda: all(noted(place, journal)[one] for one in children_of))
        check(place, journal)
        eventually(lambda: not children(pid), what="children to end")
        assert run.workers() == [pid]

    check_each(fork, [(place,) for place in forks.PLACES])
    groups = Counter(
        name.rstrip("0123456789")
        for name in Group.objects.values_list("name", flat=True)
    )
    queries = [place for place in forks.PLACES if ends_of(place).get("query") == 0]
    assert groups.pop("of a fork ") == len(queries)
    of_transactions = [f"of {end}" for end in ends_of("in_transaction")]
    of_blocks = [f"of {end} once more" for end in ends_of("in_block")]
    assert groups == dict.fromkeys([*of_transactions, *of_blocks], 1)
    assert run.stop() == 0


EMBEDDED = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
from tests.sample import forks
with django_jobqueue.worker(threads=1) as worker:
    worker.wait_idle(60)
print("the program ends")
"""


@pytest.mark.parametrize(
    "places",
    [
        IN_SHORT,
        pytest.param(
            [p for p in forks.PLACES if "receiver" not in p and p not in IN_SHORT],
            marks=pytest.mark.slow("further places"),
        ),
    ],
)
def test_a_child_that_comes_back_ends_also_in_an_embedded_worker(
    program: Run, journal: str, places: list[str]
) -> None:
    for place in places:
        enqueue(place, journal)
    run = program(EMBEDDED)
    assert run.wait() == 0, run.output
    check_each(check, [(place, journal) for place in places])
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
