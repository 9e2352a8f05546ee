"""``jobqueue hosts``: a list, and what hosts are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.management.jobqueue import hosts
from django_jobqueue.management.jobqueue.hosts import Hosts
from django_jobqueue.models import Host
from tests.commands.conftest import jobqueue, not_refused, refusal
from tests.stats.rows import host

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("requests_commit")]


def desired() -> dict[str, Any]:
    """What each host is asked for, without the number of the request."""
    return {
        host.name: {k: v for k, v in host.desired.items() if k != "number"}
        for host in Host.objects.exclude(desired={})
    }


def test_hosts_are_listed_with_what_they_are_asked_for() -> None:
    assert jobqueue("hosts").out == "No host is alive.\n"
    host("web-1:1", release="r1", queues=["mail"], desired={"number": 1, "restart": 1})
    host("web-2:2", processes=0, state="parked", error="The code does not start: no.")
    host("web-3:3/embedded", embedded=True, desired={"number": 1, "draining": True})
    host("web-4:4", state="stopped", lease_until="2020-01-01T00:00Z")
    lines = jobqueue("hosts").out.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "Host State Processes Threads Async slots Release Queues Asked for Age",
        "web-1:1 running 2 4 100 r1 mail restart 0 s",
        "web-2:2 parked 0 4 100 - every - 0 s",
        "web-3:3/embedded running 2 4 100 - every drain 0 s",
        "web-2:2: The code does not start: no.",
    ]


def test_programs_are_told_the_documented_keys() -> None:
    one = host("web-1:1", queues=["mail"])
    (told,) = jobqueue("hosts --format json").json
    assert all(key in Hosts.json for key in told)
    assert (told["id"], told["queues"], told["desired"]) == (str(one.pk), ["mail"], {})
    (told,) = jobqueue("hosts drain --all --format json").json
    assert told["desired"] == {"number": 1, "draining": True}


ONE, TWO, THREE = "web-1:1", "web-2:2", "web-3:3"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("scale", ONE, "--processes", "4"), {ONE: {"processes": 4}}),
        (("scale", ONE, "--queues", "none"), {ONE: {"queues": None}}),
        (
            ("scale", "--host", "web-2", "--threads", "8", "--queues", "mail,sms"),
            {TWO: {"threads": 8, "queues": ["mail", "sms"]}},
        ),
        (
            ("scale", "--all", "--async-slots", "7"),
            {name: {"async_slots": 7} for name in (ONE, TWO)},
        ),
        (("restart", "--all"), {name: {"restart": 1} for name in (ONE, TWO)}),
        (("restart", "--release", "r1"), {ONE: {"restart": 1}}),
        (("drain", ONE, THREE), {name: {"draining": True} for name in (ONE, THREE)}),
        (("resume", "--all"), dict.fromkeys((ONE, TWO, THREE), {"draining": False})),
        (("stop", TWO, "--yes"), {TWO: {"stop": 1}}),
    ],
)
def test_hosts_are_chosen_by_their_names_or_by_what_they_share(
    arguments: tuple[str, ...], expected: dict[str, Any]
) -> None:
    host(ONE, release="r1")
    host(TWO)
    host(THREE, embedded=True)
    answer = jobqueue("hosts", *arguments)
    assert desired() == expected
    were = "host was" if len(expected) == 1 else "hosts were"
    assert f"{len(expected)} {were} asked to {arguments[0]}." in answer.out
    left_out = arguments[:2] in (("scale", "--all"), ("restart", "--all"))
    assert ("1 embedded worker left out" in answer.err) == left_out


def test_what_cannot_be_is_refused_and_nobody_is_asked() -> None:
    host(ONE)
    reasons = {
        "drain": "Name hosts, or choose them by --host, --release or --all.",
        "drain web-1:1 --all": "Name hosts or choose them by",
        "drain web-1:2": "There is no living host 'web-1:2'. Did you mean",
        "drain --host web-9": "No living host has --host web-9.",
        "drian --all": "hosts has no verb 'drian'. Did you mean 'drain'?",
        "scale --all": "Give --processes, --threads, --async-slots or --queues.",
        "scale --all --threads many": "threads must be a whole number",
        "scale --all --threads 0 --async-slots 0": "nothing can run",
        "drain --all --processes 1": "--processes goes with scale alone.",
        "stop --all": "1 host would be stopped: pass --yes to confirm.",
        "restart --all --rolling 0": "--rolling: '0' is not a share.",
        "restart --all --rolling 150%": "--rolling: '150%' is not a share.",
        "restart --all --wait soon": "--wait: 'soon' is not a duration.",
    }
    assert not_refused("hosts", reasons) == {}
    assert desired() == {}


@pytest.fixture
def obeys(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let hosts do what they are asked while somebody waits, but these fail."""

    def let(*failing: str) -> None:
        def sleep(seconds: float) -> None:
            for one in Host.objects.all():
                one.applied = dict(one.desired)
                if one.name in failing:
                    one.applied.pop("restart", None)
                    one.error = "The code does not start: no."
                one.save()

        monkeypatch.setattr(hosts.time, "sleep", sleep)

    return let


def test_a_rolling_restart_goes_on_when_those_before_work_again(
    obeys: Callable[..., None], operated: list[dict[str, Any]]
) -> None:
    for number in range(1, 6):
        host(f"web-{number}:1")
    obeys()
    out = jobqueue("hosts restart --all --rolling 40%").out
    assert [told["count"] for told in operated] == [2, 2, 1]
    assert out.count("done.") == 6
    assert "5 hosts were asked to restart. It is done." in out


def test_a_rolling_restart_ends_with_the_first_host_that_fails(
    obeys: Callable[..., None],
) -> None:
    for number in range(1, 5):
        host(f"web-{number}:1")
    obeys("web-2:1")
    assert refusal("hosts restart --all --rolling 1") == (
        "web-2:1: The code does not start: no. 2 more got no request."
    )
    assert set(desired()) == {"web-1:1", "web-2:1"}


def test_waiting_ends_after_its_time(obeys: Callable[..., None]) -> None:
    host(ONE)
    assert "Not done within 0 s: web-1:1." in refusal(f"hosts drain {ONE} --wait 0")
    obeys()
    assert "It is done." in jobqueue(f"hosts resume {ONE} --wait 1m").out


def test_a_host_that_ends_has_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    host(ONE)
    monkeypatch.setattr(hosts.time, "sleep", lambda s: Host.objects.all().delete())
    assert "web-1:1 has ended." in refusal(f"hosts restart {ONE} --wait 1m")
    operations.ask_hosts([], "drain")
