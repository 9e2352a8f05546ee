"""Rooms: what each installed feature adds, and how the core finds it by INSTALLED_APPS.

The core is the first room. What a room offers is named by dotted paths, and loaded when
somebody asks for it: a worker never loads a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules, resolve_name
from typing import Any, ClassVar, NamedTuple

from django.apps import AppConfig, apps
from django.db.models import Model


class Tab(NamedTuple):
    """A page of the admin that every page of ours leads to."""

    name: str  # of a model of the room, in lower case; or of a page
    label: Any
    key: str  # goes there, after "g"


class Room(AppConfig):
    """The app of a feature."""

    name = ""
    default = False  # is no app itself
    default_auto_field = "django.db.models.BigAutoField"

    needs: ClassVar[Sequence[str]] = ()  # other apps of this package
    tabs: ClassVar[Sequence[Tab]] = ()
    # Of ``manage.py jobqueue``: classes, by the name.
    subcommands: ClassVar[Mapping[str, str]] = {}
    # Modules whose checks register with ``checks.lazy_loading``.
    checks: ClassVar[Sequence[str]] = ()
    # What ``jobqueue roles`` gives: rights of the app, by the role.
    rights: ClassVar[Mapping[str, Sequence[str]]] = {}
    # How its tables are stored: SQL, also for projects without migrations.
    storage: ClassVar[str] = ""
    # Where an erasure looks: tuples of ``Source``.
    personal_columns: ClassVar[Sequence[str]] = ()
    # Work that jobs of ours carry on: a ``ChunkedWork``, by the name that a job has for
    # the id of its row.
    chunked_work: ClassVar[Mapping[str, str]] = {}
    # Functions that delete a batch of old rows, ``drop(db, keep=seconds)``, and say
    # whether there may be more.
    dropped: ClassVar[Sequence[str]] = ()
    # The same once an hour, and with a time of their own: ``drop(db)``.
    dropped_hourly: ClassVar[Sequence[str]] = ()
    # Parts of the statements that record failures: ``OnFailure``s.
    on_failure: ClassVar[Sequence[str]] = ()
    # Threads of the maintenance process, each with a connection of its own: functions
    # ``(db, connect, host)`` that look once what there is to do, and make a loop or
    # None. ``host`` is a ``HostMaintenance``; once it wants no worker, they are woken.
    maintenance_threads: ClassVar[Sequence[str]] = ()
    # Loops of the maintenance process that share its connection and what it reads of
    # the future: functions ``(connection, deadlines)`` that make one or None.
    maintenance_loops: ClassVar[Sequence[str]] = ()
    # The moments that such a loop waits for, read with the others: ``Deadline``s.
    deadlines: ClassVar[Sequence[str]] = ()
    # What does the jobs of types that have no function, by how: functions of the
    # ``Declaration``. Workers load them before they fork.
    handlers: ClassVar[Mapping[str, str]] = {}
    # What workers gather, and write with their counts: objects with ``write(db,
    # worker)`` that are true while there is something.
    gathered: ClassVar[Sequence[str]] = ()
    # What a host declares before it claims: functions ``(db)`` that return ``Step``s.
    declared: ClassVar[Sequence[str]] = ()
    # What is measured: ``RoomMetrics``.
    metrics: ClassVar[Sequence[str]] = ()
    # What a list of the command shows below its own, by the subcommand: ``MoreRows``.
    more_rows: ClassVar[Mapping[str, str]] = {}
    # Rows of workers that are no process, by their state: the ``RowPage`` of each.
    row_pages: ClassVar[Mapping[str, str]] = {}
    # What needs attention: functions ``(now)`` that yield ``Concern``s.
    concerns: ClassVar[Sequence[str]] = ()
    # What the overview lists below its notices: functions ``(request, now)`` that make
    # an ``OverviewList`` or None.
    overview_lists: ClassVar[Sequence[str]] = ()
    # What stands above each list of the admin, and below the results of a search:
    # functions of a template's context that make HTML.
    above_lists: ClassVar[Sequence[str]] = ()
    below_search: ClassVar[Sequence[str]] = ()
    # Where the box leads that takes an id or a name: functions ``(request, text)`` that
    # make an address, or "".
    jumps: ClassVar[Sequence[str]] = ()
    # What the pages of a job and of a job type show of it: functions ``(request,
    # metadata)`` that make facts, and ``(request, job_type)``, a ``JobTypePart``.
    job_facts: ClassVar[Sequence[str]] = ()
    job_type_parts: ClassVar[Sequence[str]] = ()
    # Of ``jobqueue status``: ``StatusList``s.
    status_lists: ClassVar[Sequence[str]] = ()
    # Of ``jobqueue doctor``: functions that yield findings, by the id of these.
    examinations: ClassVar[Mapping[str, str]] = {}
    # Modules whose operations the HTTP API has, if that is installed.
    http_routes: ClassVar[Sequence[str]] = ()
    # Functions that name the owner of a remote worker, by the path of its caller.
    owners: ClassVar[Mapping[str, str]] = {}


def rooms() -> list[Room]:
    """Those that are installed, the core first."""
    return [config for config in apps.get_app_configs() if isinstance(config, Room)]


def models() -> list[type[Model]]:
    """Those of all rooms."""
    return [model for room in rooms() for model in room.get_models()]


def absent() -> Iterator[type[Room]]:
    """Those of this package that are not installed: what they offer, to say how to get
    it, and nothing that it names."""
    installed = {room.name for room in rooms()}
    for each in iter_modules([str(Path(__file__).with_name("contrib"))]):
        name = f"django_jobqueue.contrib.{each.name}"
        if name in installed or find_spec(f"{name}.apps") is None:
            continue
        for one in vars(import_module(f"{name}.apps")).values():
            if isinstance(one, type) and issubclass(one, Room) and one.name == name:
                yield one


def load(path: str) -> Any:
    """An offer of a room, by its dotted path."""
    return resolve_name(path)


def named(port: str) -> dict[str, str]:
    """The paths that the rooms offer there by a name."""
    offers = (getattr(room, port) for room in rooms())
    return {name: path for each in offers for name, path in each.items()}


def offer(port: str, name: str) -> Any:
    """Loads the offer of a room there by this name; None if no room has one."""
    path = named(port).get(name)
    return None if path is None else load(path)


def offered(port: str) -> Iterator[Any]:
    """The rooms' offers there, loaded."""
    for room in rooms():
        yield from map(load, getattr(room, port))
