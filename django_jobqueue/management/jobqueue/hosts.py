"""``jobqueue hosts``: which hosts there are, and what they are asked to do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.core.management.base import CommandError

from django_jobqueue.conf import Conf, conf
from django_jobqueue.domain.host_plans import request_words
from django_jobqueue.domain.states import HostState
from django_jobqueue.management.jobqueue.console import Console, counted, were
from django_jobqueue.management.jobqueue.inputs import chosen, duration, values_of
from django_jobqueue.management.jobqueue.subcommand import (
    YES,
    Options,
    SubcommandWithVerbs,
    Words,
    by,
    sentences,
)
from django_jobqueue.models import Host
from django_jobqueue.text import timezones
from django_jobqueue.text.numbers import span
from django_jobqueue.verbs.columns import (
    NUMBER,
    QUEUES,
    SPAN,
    Column,
    Listing,
    only_json,
)
from django_jobqueue.verbs.declarations import Argument, Takes, Verb, only
from django_jobqueue.verbs.workers import OF_HOSTS, SCALE

POLL: Final = 0.2  # seconds
LEAVING: Final = (HostState.STOPPING, HostState.RESTARTING)


def batch_size(text: str | None, count: int) -> int:
    """How many of so many hosts are asked at once; a share is rounded up. Raises
    CommandError."""
    if text is None:
        return max(1, count)
    number, percent = text.removesuffix("%"), text.endswith("%")
    if not number.isdecimal() or int(number) < 1 or (percent and int(number) > 100):
        raise CommandError(
            f"--rolling: {text!r} is not a share. Write a number of hosts, or 25%."
        )
    return math.ceil(count * int(number) / 100) if percent else int(number)


class Rolling:
    """Goes through them; the first one that fails ends it, so that the others go on
    as they are."""

    def __init__(self, console: Console, size: int, wait: float) -> None:
        self._console = console
        self._size = max(1, size)
        self._wait = wait

    def go(
        self,
        hosts: Sequence[Host],
        ask: Callable[[list[Host]], None],
        *,
        restarts: bool = False,
    ) -> None:
        """Ask them, and wait. Raises CommandError."""
        for start in range(0, len(hosts), self._size):
            some = list(hosts[start : start + self._size])
            ask(some)
            left = len(hosts) - start - len(some)
            self._wait_for(some, left, restarts=restarts)

    def _wait_for(self, hosts: Sequence[Host], left: int, *, restarts: bool) -> None:
        waiting = {host.pk: host.name for host in hosts}
        others = f" {left} more got no request." if left else ""
        deadline = time.monotonic() + self._wait
        while True:
            rows = Host.objects.using(conf.database).in_bulk(list(waiting))
            for id, name in list(waiting.items()):
                row = rows.get(id)
                if row is None or is_done(row):
                    del waiting[id]
                    self._check(row, name, others, restarts=restarts)
            if not waiting:
                return
            if time.monotonic() > deadline:
                names = ", ".join(waiting.values())
                raise CommandError(
                    f"Not done within {span(self._wait)}: {names}.{others}"
                )
            time.sleep(POLL)

    def _check(
        self, row: Host | None, name: str, others: str, *, restarts: bool
    ) -> None:
        """Raises CommandError if it has not done what it was asked."""
        if row is not None and row.error and row.pending:
            raise CommandError(f"{name}: {row.error}{others}")
        if restarts and (row is None or row.stopped_at is not None):
            raise CommandError(f"{name} has ended.{others}")
        self._console.info(f"{name}: done.")


def is_done(host: Host) -> bool:
    """True if it has dealt with the last request, or has ended."""
    if host.stopped_at is not None:
        return True
    is_dealt_with = host.applied.get("number") == host.desired.get("number")
    return is_dealt_with and host.state not in LEAVING


def _age(host: Host) -> float:
    return round((timezones.now() - host.started_at).total_seconds(), 1)


HOSTS: Final = Listing(
    (
        Column("id", value=lambda host: str(host.pk)),
        Column("name", "Host", breaks=True),
        *only_json("host embedded"),
        Column("", "State", value="state"),
        Column("", "Processes", NUMBER, "processes"),
        Column("", "Threads", NUMBER, "threads"),
        Column("", "Async slots", NUMBER, "async_slots"),
        Column("release", "Release", cut=True),
        *only_json("state processes threads async_slots"),
        Column("queues", "Queues", QUEUES, note="null is every queue", cut=True),
        Column(
            "",
            "Asked for",
            value=lambda host: ", ".join(request_words(host.pending)),
            breaks=True,
        ),
        Column("age", "Age", SPAN, _age, "seconds"),
        *only_json("desired applied error"),
    ),
    "No host is alive.",
    color=lambda host: "red" if host.error else "",
)


class Hosts(SubcommandWithVerbs):
    name = "hosts"
    summary = "List hosts; scale, restart, stop or drain them."
    verbs = ("list", *OF_HOSTS)
    wanted = "HOST ..."
    description = f"""\
List the hosts that are alive, each a runworkers or an embedded worker; or ask
hosts to do something:

{sentences(OF_HOSTS.values(), 7)}

A host is named as the list shows it (host:pid); or hosts are chosen by --host,
--release or --all.

  jobqueue hosts
  jobqueue hosts scale web-3:4711 --processes 4 --threads 8
  jobqueue hosts scale --host web-3 --processes 0
  jobqueue hosts restart --all --rolling 25%
  jobqueue hosts stop web-3:4711

A new plan lasts until the host ends; a restart keeps it. Embedded workers can
only be drained, resumed and stopped. A service manager may restart a stopped
host."""
    json = f"a list. Each is {HOSTS.keys}."
    arguments = (
        Argument("host", "Hosts of this machine."),
        Argument("release", "Hosts of this release."),
        Argument("all", "All living hosts.", Takes.FLAG),
        *only("scale", *SCALE.arguments),
        Argument(
            "rolling",
            "Restart this many at once, 25%% or 2, and continue when they work again.",
            "SHARE",
            only="restart",
        ),
        Argument(
            "wait",
            "Wait until the hosts have done it, at most this long (with --rolling for "
            "each, default: 10m).",
            Takes.DURATION,
            only=" ".join(OF_HOSTS),
        ),
        YES._replace(only="stop"),
    )

    def do(self, verb: str, words: Words, console: Console, options: Options) -> None:
        hosts = chosen("host", words, options, living(), needs_choice=verb != "list")
        if verb in ("scale", "restart") and not words:
            hosts = _without_embedded(hosts, verb, console)
        if verb == "list":
            _show(console, hosts)
            return
        rolling = None
        if options["rolling"] or options["wait"]:
            wait = duration("--wait", options["wait"] or "10m").total_seconds()
            rolling = Rolling(console, batch_size(options["rolling"], len(hosts)), wait)
        changes = _changes(OF_HOSTS[verb], options)
        if verb == "stop" and not options["yes"]:
            text = counted(len(hosts), "host")
            console.make_sure(
                f"{text} will be stopped. Go on?",
                "Nothing was done.",
                f"{text} would be stopped: pass --yes to confirm.",
            )

        def ask(some: list[Host]) -> None:
            ids = [host.pk for host in some]
            OF_HOSTS[verb].function(ids, by=by(), **changes)

        if rolling is None:
            ask(hosts)
        else:
            rolling.go(hosts, ask, restarts=verb == "restart")
        _report(console, verb, hosts, is_done=rolling is not None)


def _changes(verb: Verb, options: Options) -> dict[str, Any]:
    """The changes to the plan. Raises CommandError if there is none."""
    given = values_of(verb.arguments, options, timezones.now())
    if verb.needs and not given:
        raise CommandError(verb.needs)
    return {n: Conf.settings[n.upper()].parse(value) for n, value in given.items()}


def living() -> Any:
    """The hosts that are alive, by name."""
    hosts = Host.objects.using(conf.database).filter(stopped_at=None)
    return hosts.filter(lease_until__gt=timezones.now()).order_by("name", "started_at")


def _without_embedded(hosts: list[Host], verb: str, console: Console) -> list[Host]:
    """Leave out those that cannot be asked, since nobody named them."""
    others = [host for host in hosts if not host.embedded]
    if left_out := len(hosts) - len(others):
        console.warn(
            f"{counted(left_out, 'embedded worker')} left out: {verb} the programs "
            "that they run in."
        )
    return others


def _report(console: Console, verb: str, hosts: list[Host], *, is_done: bool) -> None:
    if console.is_json:
        ids = [host.pk for host in hosts]
        rows = Host.objects.using(conf.database).filter(pk__in=ids).order_by("name")
        _show(console, list(rows))
        return
    done = " It is done." if is_done else ""
    lasts = ""
    if verb == "scale":
        lasts = " It lasts until the host ends; its flags and settings stay."
    console.info(f"{were(len(hosts), 'host', f'asked to {verb}')}.{lasts}{done}")


def _show(console: Console, hosts: list[Host]) -> None:
    console.rows(HOSTS, hosts)
    for host in hosts:
        if host.error and not console.is_json:
            console.print(f"{host.name}: {host.error}")
