"""System checks: every mistake in the settings has an id, a sentence and a hint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

import django
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning
from django.core.exceptions import ImproperlyConfigured
from django.db import Error as DatabaseError
from django.db import NotSupportedError, ProgrammingError, connections, transaction

from django_jobqueue import middleware
from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.conf import Conf, conf
from django_jobqueue.domain.databases import vendor_problem
from django_jobqueue.domain.registry import handler_names, missing_modules, registry
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution import middleware_chain as chain
from django_jobqueue.processes.listener import can_listen
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.text.suggestions import did_you_mean
from django_jobqueue.workers import unfinished_jobs_dump

TAG: Final = "jobqueue"
OLDEST: Final = 14


@register(TAG)
def check_dump_folder(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W008: the folder for lists of unfinished jobs can be written to."""
    folder = conf.dump_dir
    problem = folder and unfinished_jobs_dump.problem(folder)
    if not problem:
        return []
    return [
        Warning(
            f"JOBQUEUE['DUMP_DIR'] ({folder!r}) cannot be written to: {problem}.",
            hint="The log lists the jobs that a stop cuts off. If that is enough, "
            "remove DUMP_DIR; otherwise name a folder that workers can write to.",
            id="jobqueue.W008",
        )
    ]


@register(TAG)
def check_modules(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W010: modules of handlers that no app has."""
    return [
        Warning(
            f"JOBQUEUE['MODULES'] names {module!r}, which no installed app has.",
            hint=did_you_mean(module, Conf.modules.default).strip()
            or f"Handlers are searched for in the module {module!r} of each app.",
            id="jobqueue.W010",
        )
        for module in missing_modules()
    ]


@register(TAG, deploy=True)
def check_handlers(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W011: a worker finds something to run where the project is deployed."""
    if handler_names():
        return []
    return [
        Warning(
            "There are no handlers, so no job can run.",
            hint="Declare functions with @job in the module "
            f"{' or '.join(conf.modules) or 'jobs'} of an app in INSTALLED_APPS.",
            id="jobqueue.W011",
        )
    ]


@register(TAG)
def check_middleware(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E009, W005: middleware can be loaded, and suits the handlers."""
    wrong: dict[object, CheckMessage] = {}
    slow: dict[object, list[str]] = {}
    for where, named in _middleware():
        if problem := _middleware_problem(where, named):
            wrong.setdefault(named, problem)
    if wrong:
        return list(wrong.values())
    for declaration in registry:
        for named in chain.middleware_of(declaration) if declaration.is_async else ():
            if not chain.is_async_capable(chain.load(named)):
                slow.setdefault(named, []).append(declaration.name)
    return [_slow(named, sorted(names)) for named, names in slow.items()]


def _middleware() -> Iterator[tuple[str, chain.Named]]:
    """Where each is named, and what it is."""
    for path in conf.middleware:
        yield "JOBQUEUE['MIDDLEWARE']", path
    for declaration in registry:
        for named in declaration.policy.middleware:
            yield f"@job(middleware=…) of {declaration.name!r}", named


def _middleware_problem(where: str, named: chain.Named) -> CheckMessage | None:
    try:
        chain.load(named)
    except (ImportError, ImproperlyConfigured) as error:
        return Error(
            f"{where} names {named!r}, which cannot be used: {error}",
            hint=_near_path(str(named)),
            id="jobqueue.E009",
        )
    return None


def _near_path(path: str) -> str:
    """A guess what was meant by a dotted path that leads nowhere."""
    place, _, name = path.rpartition(".")
    try:
        module = import_module(place)
    except (ImportError, ValueError):
        ours = [f"{middleware.__name__}.{known}" for known in middleware.__all__]
        near = get_close_matches(path, ours, n=1)
    else:
        near = [f"{place}.{n}" for n in get_close_matches(name, dir(module), n=1)]
    if near:
        return f"Did you mean {near[0]!r}?"
    return "Give the dotted path of a factory, such as 'shop.middleware.tenant'."


def _slow(named: object, job_types: list[str]) -> CheckMessage:
    return Warning(
        f"The middleware {named!r} is sync, but wraps async handlers: "
        f"{', '.join(job_types)}. They run one at a time.",
        hint="Make it async_capable, with django.utils.decorators."
        "sync_and_async_middleware, or name it only where handlers are sync.",
        id="jobqueue.W005",
    )


@register(TAG)
def check_autocommit(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E010, W006: what handlers write is committed."""
    if conf.mode != "queue":
        return
    for alias, settings_of in connections.settings.items():
        if settings_of.get("AUTOCOMMIT", True):
            continue
        level, id = (
            (Error, "jobqueue.E010")
            if alias == conf.database
            else (Warning, "jobqueue.W006")
        )
        yield level(
            f"DATABASES[{alias!r}]['AUTOCOMMIT'] is False: nothing commits a "
            "handler's writes there.",
            hint="Remove it, and use transaction.atomic() where several writes belong "
            "together.",
            id=id,
        )


@register(TAG)
def check_database_setting(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E005–E007: the database of the jobs exists in DATABASES, and is PostgreSQL.

    In the modes that run jobs at enqueue there need be none.
    """
    if conf.mode != "queue":
        return []
    alias = conf.database
    if alias not in connections.settings:
        near = get_close_matches(alias, list(connections.settings), n=1)
        known = f"The aliases are {', '.join(sorted(connections.settings))}."
        return [
            Error(
                f"JOBQUEUE['DATABASE'] is {alias!r}, which is not in DATABASES.",
                hint=f"Did you mean {near[0]!r}?" if near else known,
                id="jobqueue.E005",
            )
        ]
    if problem := vendor_problem(alias):
        return [
            Error(
                problem,
                hint="Use django.db.backends.postgresql for it, or name another alias "
                "in JOBQUEUE['DATABASE'].",
                id="jobqueue.E006",
            )
        ]
    return _check_driver()


@register(TAG)
def check_framework(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E024: TASKS on Django 5.2, where nothing reads it without the backport."""
    given = getattr(settings, "TASKS", None)
    if django.VERSION >= (6, 0) or find_spec("django_tasks") or not given:
        return []
    version = django.get_version()
    return [
        Error(
            f"TASKS is set, but Django {version} has no Tasks framework of its own.",
            hint='Install the backport: pip install "django-jobqueue[tasks]".',
            id="jobqueue.E024",
        )
    ]


@register(TAG, deploy=True)
def check_mode(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W004: jobs wait for workers where the project is deployed."""
    if conf.mode == "queue":
        return []
    return [
        Warning(
            f"JOBQUEUE['MODE'] is {conf.mode!r}: jobs run in the process that enqueues "
            "them, once, and are lost with it.",
            hint="Remove MODE where the project is deployed.",
            id="jobqueue.W004",
        )
    ]


def _check_driver() -> list[CheckMessage]:
    from django.db.backends.postgresql.psycopg_any import is_psycopg3

    if is_psycopg3:
        return []
    return [
        Error(
            "The job queue needs psycopg 3, but Django uses psycopg2.",
            hint='Install "psycopg[binary]"; Django prefers it when both are there.',
            id="jobqueue.E007",
        )
    ]


@register(Tags.database)
def check_server(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> Iterable[CheckMessage]:
    """E008, E013, W002, W003, W021: the server, by ``manage.py check --database …``."""
    alias = conf.database
    if alias not in (databases or ()) or connections[alias].vendor != "postgresql":
        return []
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute("SHOW server_version_num")
            version = int(cursor.fetchone()[0])
            cursor.execute("SHOW server_encoding")
            encoding = str(cursor.fetchone()[0])
        if version < OLDEST * 10_000:
            needed = f"PostgreSQL {OLDEST} or later is required"
            return [_too_old(f"{needed} (found {version // 10_000}).")]
        if encoding != "UTF8":
            return [_in_other_encoding(alias, encoding)]
        listens = conf.listen is not None or _hears()
        asleep = _asleep(alias)
    except NotSupportedError as error:  # Django may need a later one than we do
        return [_too_old(str(error))]
    except (DatabaseError, StoreUnavailable) as error:
        return [
            Warning(
                f"The database {alias!r} cannot be queried: {error}",
                hint="Until it can be reached, workers wait and enqueues raise.",
                id="jobqueue.W002",
            )
        ]
    return [*([] if listens else [_POOLER]), *asleep]


def _asleep(alias: str) -> list[CheckMessage]:
    try:
        with transaction.atomic(using=alias):
            sleep = database_identity.read_sleep(DjangoDatabase(alias))
    except ProgrammingError:  # the tables are missing
        return []
    if sleep is None:
        return []
    return [
        Warning(
            f"{sleep.value} Workers that start in it do nothing.",
            hint="If this is the real database, not a copy, run manage.py jobqueue "
            "wake.",
            id="jobqueue.W021",
        )
    ]


def _hears() -> bool:
    ear = OwnConnection("check", pooled=True)
    mouth = OwnConnection("check", pooled=True)
    try:
        return can_listen(ear, mouth)
    finally:
        ear.close()
        mouth.close()


def _in_other_encoding(alias: str, encoding: str) -> CheckMessage:
    return Error(
        f"The database {alias!r} is in {encoding}, which lacks characters that data, "
        "results and errors of jobs may have.",
        hint="Create it with ENCODING 'UTF8' TEMPLATE template0, or name another one "
        "in JOBQUEUE['DATABASE'].",
        id="jobqueue.E013",
    )


def _too_old(reason: str) -> CheckMessage:
    return Error(
        f"The server of the job queue is too old: {reason}",
        hint="Upgrade the server.",
        id="jobqueue.E008",
    )


_POOLER: Final = Warning(
    "LISTEN receives nothing on this connection: it looks like a transaction pooler, "
    "such as PgBouncer in transaction mode.",
    hint="Workers poll instead, up to once a second. For pickup within milliseconds "
    "give the same alias HOST and PORT of the server itself where workers run, or set "
    "JOBQUEUE['LISTEN'] = False to accept polling.",
    id="jobqueue.W003",
)
