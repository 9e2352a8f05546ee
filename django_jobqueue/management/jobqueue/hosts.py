"""``jobqueue hosts``: which hosts there are, and what they are asked to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser

from django_jobqueue import operations
from django_jobqueue.conf import Conf, conf
from django_jobqueue.domain.host_plans import request_words
from django_jobqueue.management.jobqueue import many_jobs
from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.rolling import Rolling, batch_size
from django_jobqueue.management.jobqueue.subcommand import by
from django_jobqueue.management.jobqueue.subcommand_verbs import SubcommandWithVerbs
from django_jobqueue.management.jobqueue.text_tables import Column, Row
from django_jobqueue.management.jobqueue.time_formats import duration
from django_jobqueue.models import Host
from django_jobqueue.text import numbers, timezones
from django_jobqueue.text.suggestions import did_you_mean

ASKED: Final = ("drain", "resume", "restart", "stop")
PLAN: Final = ("processes", "threads", "async_slots", "queues")
CHOICES: Final = "--host, --release or --all"
COLUMNS: Final = (
    Column("Host", breaks=True),
    Column("State"),
    *(Column(title, right=True) for title in ("Processes", "Threads", "Async slots")),
    Column("Release", cut=True),
    Column("Queues", cut=True),
    Column("Asked for", breaks=True),
    Column("Age", right=True),
)


class Hosts(SubcommandWithVerbs):
    """Lists hosts, and asks them."""

    name = "hosts"
    summary = "List hosts; scale, restart, stop or drain them."
    verbs = ("list", "scale", *ASKED)
    wanted = "HOST ..."
    description = """\
List the hosts that are alive, each a runworkers or an embedded worker; or ask
hosts to do something:

  scale    have other processes, threads, async slots or queues; workers are
           replaced one by one, each when its successor works
  restart  load new code: another process tries it first, so that code that does
           not start leaves the host at work
  stop     finish what runs, within GRACE, and end with exit code 0
  drain    claim nothing more, finish what runs, and stay
  resume   claim again

A host is named as the list shows it (host:pid); or hosts are chosen by --host,
--release or --all.

  jobqueue hosts
  jobqueue hosts scale web-3:4711 --processes 4 --threads 8
  jobqueue hosts scale --host web-3 --processes 0
  jobqueue hosts restart --all --rolling 25%
  jobqueue hosts stop web-3:4711

It lasts until the host ends, since its flags and settings say what it starts
with; a restart keeps it. Embedded workers can be drained and stopped alone. A
stopped host that a service manager restarts is soon back."""
    epilog = """\
--format json prints a list. Each is {id, name, host, embedded, release, state,
processes, threads, async_slots, queues (null is every queue), age (seconds),
desired, applied, error}."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add how hosts are chosen, and their plans."""
        super().add_arguments(parser)
        parser.add_argument("--host", help="Hosts of this machine.")
        parser.add_argument("--release", help="Hosts of this release.")
        parser.add_argument("--all", action="store_true", help="All living hosts.")
        for name in PLAN:
            setting = Conf.settings[name.upper()]
            metavar = "NAME,..." if name == "queues" else "NUMBER"
            parser.add_argument(
                setting.flag, dest=name, metavar=metavar, help=_help(name)
            )
        parser.add_argument(
            "--rolling",
            metavar="SHARE",
            help="Restart so many at once, 25%% or 2, and go on when they work again.",
        )
        parser.add_argument(
            "--wait",
            metavar="DURATION",
            help="Wait until the hosts have done it, at most so long (with --rolling "
            "for each, default: 10m).",
        )
        many_jobs.add_yes(parser)

    only_with = {
        **dict.fromkeys(PLAN, ("scale",)),
        "rolling": ("restart",),
        "wait": ("scale", *ASKED),
        "yes": ("stop",),
    }

    def do(
        self, verb: str, words: list[str], console: Console, options: dict[str, Any]
    ) -> None:
        """List them, or ask those that are named. Raises CommandError."""
        hosts = _chosen(words, options, needs_choice=verb != "list")
        if verb in ("scale", "restart") and not words:
            hosts = _without_embedded(hosts, verb, console)
        if verb == "list":
            _show(console, options, hosts)
            return
        rolling = None
        if options["rolling"] or options["wait"]:
            wait = duration("--wait", options["wait"] or "10m").total_seconds()
            rolling = Rolling(console, batch_size(options["rolling"], len(hosts)), wait)
        changes = _changes(options) if verb == "scale" else {}
        if verb == "stop":
            _confirm(console, options, hosts)

        def ask(some: list[Host]) -> None:
            ids = [host.pk for host in some]
            if verb == "scale":
                operations.scale_hosts(ids, by=by(), **changes)
            else:
                operations.ask_hosts(ids, verb, by=by())

        if rolling is None:
            ask(hosts)
        else:
            rolling.go(hosts, ask, restarts=verb == "restart")
        _report(console, options, verb, hosts, is_done=rolling is not None)


def _help(name: str) -> str:
    if name == "queues":
        return "Queues to claim from; none is every queue."
    words = {
        "processes": "Worker processes; 0 parks a host.",
        "threads": "Threads for sync handlers in each.",
        "async_slots": "Async handlers that each runs at once.",
    }
    return words[name]


def _changes(options: dict[str, Any]) -> dict[str, Any]:
    """What of the plan is to change. Raises CommandError if nothing is."""
    changes = {
        name: Conf.settings[name.upper()].parse(options[name])
        for name in PLAN
        if options[name] is not None
    }
    if not changes:
        raise CommandError("Say --processes, --threads, --async-slots or --queues.")
    return changes


def _chosen(
    words: list[str], options: dict[str, Any], *, needs_choice: bool
) -> list[Host]:
    """The living hosts that are meant. Raises CommandError."""
    filters = {name: options[name] for name in ("host", "release") if options[name]}
    ways = sum(map(bool, (words, filters or options["all"])))
    if ways > 1:
        raise CommandError(f"Name hosts or choose them by {CHOICES}, not both.")
    if needs_choice and not ways:
        raise CommandError(f"Name hosts, or choose them by {CHOICES}.")
    hosts = list(living().filter(**filters))
    if words:
        chosen = [_named(word, hosts) for word in dict.fromkeys(words)]
        return [host for some in chosen for host in some]
    if filters and not hosts:
        flags = " and ".join(f"--{name} {value}" for name, value in filters.items())
        raise CommandError(f"No living host has {flags}.")
    return hosts


def living() -> Any:
    """The hosts that are alive, by name."""
    hosts = Host.objects.using(conf.database).filter(stopped_at=None)
    return hosts.filter(lease_until__gt=timezones.now()).order_by("name", "started_at")


def _named(word: str, hosts: list[Host]) -> list[Host]:
    """The host with this name or id; several workers that are embedded in one process
    share their name. Raises CommandError."""
    named = [host for host in hosts if word in (host.name, str(host.pk))]
    if not named:
        hint = did_you_mean(word, [host.name for host in hosts])
        raise CommandError(f"There is no living host {word!r}.{hint}")
    return named


def _without_embedded(hosts: list[Host], verb: str, console: Console) -> list[Host]:
    """Leave out those that cannot be asked, since nobody named them."""
    others = [host for host in hosts if not host.embedded]
    if left_out := len(hosts) - len(others):
        console.warn(
            f"{counted(left_out, 'embedded worker')} left out: {verb} the programs "
            "that they run in."
        )
    return others


def _confirm(console: Console, options: dict[str, Any], hosts: list[Host]) -> None:
    """Raises CommandError unless somebody confirms."""
    text = counted(len(hosts), "host")
    answer = options["yes"] or console.confirm(f"{text} will be stopped. Go on?")
    if answer is None:
        raise CommandError(f"{text} would be stopped: say --yes to confirm.")
    if not answer:
        raise CommandError("Nothing was done.")


def _report(
    console: Console,
    options: dict[str, Any],
    verb: str,
    hosts: list[Host],
    *,
    is_done: bool,
) -> None:
    if options["format"] == "json":
        ids = [host.pk for host in hosts]
        rows = Host.objects.using(conf.database).filter(pk__in=ids).order_by("name")
        _show(console, options, list(rows))
        return
    were = "was" if len(hosts) == 1 else "were"
    done = " It is done." if is_done else ""
    lasts = ""
    if verb == "scale":
        lasts = " It lasts until the host ends; its flags and settings stay."
    console.info(f"{counted(len(hosts), 'host')} {were} asked to {verb}.{lasts}{done}")


def _show(console: Console, options: dict[str, Any], hosts: Iterable[Host]) -> None:
    rows = list(hosts)
    if options["format"] == "json":
        console.print(as_json([_as_object(host) for host in rows]))
    elif not rows:
        console.print("No host is alive.")
    else:
        console.table(COLUMNS, [Row(_cells(host), _color(host)) for host in rows])
        for host in rows:
            if host.error:
                console.print(f"{host.name}: {host.error}")


def _color(host: Host) -> str:
    return "red" if host.error else ""


def _as_object(host: Host) -> dict[str, Any]:
    return {
        "id": str(host.pk),
        "name": host.name,
        "host": host.host,
        "embedded": host.embedded,
        "release": host.release,
        "state": host.state,
        "processes": host.processes,
        "threads": host.threads,
        "async_slots": host.async_slots,
        "queues": host.queues,
        "age": round((timezones.now() - host.started_at).total_seconds(), 1),
        "desired": host.desired,
        "applied": host.applied,
        "error": host.error,
    }


def _cells(host: Host) -> list[str]:
    age = timezones.now() - host.started_at
    return [
        host.name,
        host.state,
        numbers.number(host.processes),
        numbers.number(host.threads),
        numbers.number(host.async_slots),
        host.release or "-",
        "every" if host.queues is None else ", ".join(host.queues),
        ", ".join(request_words(host.pending)) or "-",
        numbers.span(age.total_seconds()),
    ]
