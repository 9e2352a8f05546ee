"""Checks of the settings: E001–E007, E009–E012, E014, E015, W001–W020, with hints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.backends.postgresql import psycopg_any
from django.test import modify_settings, override_settings

import django_jobqueue
from django_jobqueue import Handler, job, middleware
from django_jobqueue.checks import (
    check_autocommit,
    check_database_setting,
    check_dump_folder,
    check_middleware,
    check_modules,
)
from django_jobqueue.checks.followers import (
    check_followers,
    check_followers_exist,
    check_followers_fit,
)
from django_jobqueue.checks.project_settings import check_settings
from django_jobqueue.conf import Conf
from django_jobqueue.domain.followers import FOLLOWER_OPTIONS
from django_jobqueue.domain.registry import registry
from tests.architecture.source import ROOT
from tests.checks.databases import database
from tests.checks.messages import only
from tests.sample import jobs

LEASES = "django_jobqueue.contrib.leases"
SCHEDULES = "django_jobqueue.contrib.schedules"


def found(**jobqueue: Any) -> list[CheckMessage]:
    return found_of(jobqueue)


def found_of(jobqueue: object, check: Any = check_settings) -> list[CheckMessage]:
    """What a check says about settings that may be no dict."""
    with override_settings(JOBQUEUE=jobqueue):
        return list(check(None))


def ids(messages: Iterable[CheckMessage]) -> list[str]:
    return sorted(str(message.id).removeprefix("jobqueue.") for message in messages)


def all_ids(**options: Any) -> list[str]:
    """Those of all messages about the settings as they are."""
    return ids(run_checks(tags=["jobqueue"], **options))


def test_good_settings_are_not_talked_about() -> None:
    assert found() == []
    assert found(LEASE=30, QUEUES=["mail"], RETENTION={"failed": None}) == []
    assert all_ids() == []
    call_command("check", "--tag", "jobqueue", "--fail-level", "WARNING")
    with override_settings():
        from django.conf import settings

        del settings.JOBQUEUE
        assert list(check_settings(None)) == []


def test_w013_a_dict_of_settings_under_another_name() -> None:
    for name in ("JOB_QUEUE", "DJANGO_JOBQUEUE", "JOBQUEUES", "JOBQUUE"):
        said = f"The setting {name} looks like the job queue's, which reads "
        with override_settings(**{name: {"MODE": "immediate"}}):
            assert run_checks(tags=["jobqueue"]) == [
                Warning(
                    f"{said}only JOBQUEUE.",
                    hint=f"Rename {name} to JOBQUEUE.",
                    id="jobqueue.W013",
                )
            ]
    modes = dict.fromkeys(("RQ_QUEUES", "QUEUE"), {"MODE": 1})
    others: dict[str, Any] = {**modes, "JOB_QUEUE": "mail", "Q_CLUSTER": {"LEASE": 1}}
    for name, value in (*others.items(), ("JOB_QUEUE", {"URL": "amqp://"})):
        with override_settings(**{name: value}):
            assert all_ids() == [], name
    with modify_settings(INSTALLED_APPS={"remove": "rangefilter"}):
        pass  # apps that are loaded once more double no message
    with override_settings(JOB_QUEUE={"MODE": "immediate"}):
        assert all_ids() == ["W013"]


def test_e001_e002_the_settings_are_a_dict_of_known_names() -> None:
    for given in (None, "LEASE", ["LEASE"], 5):
        said = f"JOBQUEUE must be a dict, not {given!r}."
        example = 'For example JOBQUEUE = {"LEASE": 15}.'
        assert found_of(given) == [Error(said, hint=example, id="jobqueue.E001")]
    every = f"The settings are {', '.join(sorted(Conf.settings))}."
    meant = {"LAESE": "LEASE", "lease": "LEASE", "THREAD": "THREADS", "QUEUE": "QUEUES"}
    hints: dict[Any, str] = {w: f"Did you mean {m!r}?" for w, m in meant.items()}
    for name, hint in (*hints.items(), ("ZZZZZ", every), (5, every)):
        said = f"JOBQUEUE[{name!r}] is not a setting of the job queue."
        assert found_of({name: 5}) == [Error(said, hint=hint, id="jobqueue.E002")]


def test_e003_a_wrong_value_is_told_with_what_the_setting_means() -> None:
    no_queue = "has an invalid queue name: it must have no space, comma or control "
    problems: list[tuple[str, Any, str]] = [
        ("LEASE", "15", "must be a number of seconds, not '15'"),
        ("QUEUES", ["mail", "bulk, slow"], f"{no_queue}character: 'bulk, slow'"),
        ("METRICS_PORT", -1, "must be from 0 to 65535, not -1"),
        ("METRICS_PORT", 65_536, "must be from 0 to 65535, not 65536"),
    ]
    for name, value, problem in problems:
        said, hint = f"JOBQUEUE[{name!r}] {problem}.", Conf.settings[name].help
        assert found(**{name: value}) == [Error(said, hint=hint, id="jobqueue.E003")]
    parts: list[tuple[str, Any, str]] = [
        ("METRICS_ALLOW", ["10.0.0.1/8"], "such as"),
        ("METRICS_ALLOW", ["localhost"], "such as"),
        ("METRICS_ALLOW", "10.0.0.0/8", "such as"),
        ("METRICS_MAX_AGE", -1, "must be at least 0"),
    ]
    for name, value, problem in parts:
        only(found(**{name: value}), "E003", problem)
    for secrets in (["short"], "secret-secret-secret", ["ünseen-ünseen-ünseen"]):
        said = only(found(METRICS_TOKENS=secrets), "E003", "of at least 16 characters.")
        assert not any(secret in said for secret in ("short", "secret-", "nseen"))
    # A database that is no name is told by this alone, and all mistakes at once.
    for given in (5, ["default"]):
        with override_settings(JOBQUEUE={"DATABASE": given}):
            assert all_ids() == ["E003"]
    wrong = found(LEASE="x", THREADS=-1, NONSENSE=1)
    assert ids(wrong) == ["E002", "E003", "E003"]


def test_e004_w001_values_that_do_not_go_together() -> None:
    none = "JOBQUEUE['THREADS'] and JOBQUEUE['ASYNC_SLOTS'] are both 0, so a worker "
    only(found(THREADS=0, ASYNC_SLOTS=0), "E004", none, "Leave one of them above 0.")
    slow = "JOBQUEUE['STATEMENT_TIMEOUT'] (15 s) is not below JOBQUEUE['LEASE'] (15 s)"
    hint = "Make LEASE longer, or STATEMENT_TIMEOUT shorter."
    only(found(STATEMENT_TIMEOUT=15, LEASE=15), "W001", slow, hint)
    assert found(THREADS=0, ASYNC_SLOTS=1) == found(THREADS=1, ASYNC_SLOTS=0) == []
    assert found(STATEMENT_TIMEOUT=14, LEASE=15) == []


def test_e014_a_setting_or_a_schedule_of_an_app_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {"ALERTS": [{"to": "mail"}], "HTTP_THROTTLE": "600/m"}
    assert found(**given) == []
    monkeypatch.setattr(apps, "is_installed", lambda name: name == LEASES)
    said = "The schedule 'testproject.shop.refresh_all_prices' never fires: its app is"
    hint = f"Add {SCHEDULES!r} to INSTALLED_APPS."
    only([one for one in found() if one.id == "jobqueue.E014"], "E014", said, hint)
    monkeypatch.setattr(apps, "is_installed", lambda name: name in (LEASES, SCHEDULES))
    assert found() == []
    for name, value in given.items():
        hint = f"Add 'django_jobqueue.contrib.{name.split('_')[0].lower()}' to INSTA"
        only(found(**{name: value}), "E014", f"JOBQUEUE[{name!r}] does nothing", hint)


def test_e015_an_app_that_another_one_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found() == []
    monkeypatch.setattr(apps, "is_installed", lambda name: name != LEASES)
    hint = f"Add {LEASES!r} to INSTALLED_APPS."
    only(found(), "E015", f"django_jobqueue.contrib.alerts needs {LEASES}, ", hint)


def test_w008_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    messages = found_of({"DUMP_DIR": "/not/there"}, check_dump_folder)
    said = "JOBQUEUE['DUMP_DIR'] ('/not/there') cannot be written to: No such file or "
    only(messages, "W008", said, "The log lists the jobs that a stop cuts off.")
    for folder in (str(tmp_path), None, ""):
        assert found_of({"DUMP_DIR": folder}, check_dump_folder) == []


def test_w017_w018_w019_metrics_for_everybody_or_without_what_writes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(METRICS_PORT=0) == found(METRICS_ENQUEUED=True) == []
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    install = 'pip install "django-jobqueue[metrics]"'
    only(found(METRICS_PORT=0), "W017", "/metrics is answered with 501", install)
    only(found(METRICS_ENQUEUED=True), "W019")
    assert found(METRICS_PORT=None) == found(METRICS_ENQUEUED=False) == []
    assert found(METRICS_ALLOW=["10.0.0.0/8"]) == []
    for network in ("0.0.0.0/0", "::/0"):
        only(found(METRICS_ALLOW=["10.0.0.0/8", network]), "W018")


def test_e003_texts_of_bytes_that_python_could_not_decode() -> None:
    """As an argument or a variable arrives that is not in UTF-8."""
    odd = b"gr\xf6\xdfe".decode("utf-8", "surrogateescape")
    taken = {}
    for name, setting in Conf.settings.items():
        value = setting.parse(odd)
        if setting.allows_type(value) and not setting.problem(value):
            taken[name] = value
    assert taken.keys() <= {"DUMP_DIR", "HEARTBEAT_FILE"}, "names of files"
    only(found(QUEUES=["mail", odd]), "E003", "must be in UTF-8")
    with pytest.raises(CommandError, match="--queues must be in UTF-8"):
        call_command("runworkers", "--queues", odd, "--check")


def test_w020_the_tables_of_the_queue_in_the_schema_of_each_tenant() -> None:
    for name in ("django_jobqueue", "django_jobqueue.apps.JobQueueConfig"):
        apps = {"TENANT_APPS": ["django.contrib.contenttypes", name]}
        kinds = {"TENANT_TYPES": {"public": {"APPS": []}, "shop": {"APPS": [name]}}}
        for of_tenants in (apps, kinds):
            with override_settings(**of_tenants):
                only(found(), "W020", "no worker runs", "only in SHARED_APPS")
    shared = {"public": {"APPS": ["django_jobqueue"]}, "shop": {"APPS": []}}
    with override_settings(TENANT_APPS=["accounts"], TENANT_TYPES=shared):
        assert found() == []


def test_e005_e006_e007_a_database_that_cannot_have_jobs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hints = {"defualt": "Did you mean 'default'?", "zzz": "The aliases are default."}
    for alias, hint in hints.items():
        messages = found_of({"DATABASE": alias}, check_database_setting)
        said = f"JOBQUEUE['DATABASE'] is {alias!r}, which is not in DATABASES."
        only(messages, "E005", said, hint)
    with database("other", ENGINE="django.db.backends.sqlite3", NAME=":memory:"):
        said = "The job queue needs PostgreSQL; the database 'other' is sqlite."
        hint = "Use django.db.backends.postgresql for it, or name another alias in JOBQ"
        only(check_database_setting(None), "E006", said, hint)
        for mode in ("immediate", "on_commit"):  # nothing is queued
            with override_settings(JOBQUEUE={"DATABASE": "other", "MODE": mode}):
                assert all_ids() == []
    monkeypatch.setattr(psycopg_any, "is_psycopg3", False)
    said = "The job queue needs psycopg 3, but Django uses psycopg2."
    only(check_database_setting(None), "E007", said, 'Install "psycopg[binary]"')


def test_w004_a_mode_for_tests_where_the_project_is_deployed() -> None:
    assert all_ids(include_deployment_checks=True) == []
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        messages = run_checks(tags=["jobqueue"], include_deployment_checks=True)
    said = "JOBQUEUE['MODE'] is 'immediate': jobs run in the"
    only(messages, "W004", said, "Remove MODE where the project is deployed.")


PROJECT = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django_jobqueue"],
    USE_TZ=True,
    JOBQUEUE={jobqueue},
    DATABASES={{"default": {{"ENGINE": "django.db.backends.postgresql"}}}},
)
django.setup()
from django.core.checks import run_checks
from django.test import override_settings
def ids(**options):
    found = run_checks(tags=["jobqueue"], **options)
    print(*sorted(message.id.removeprefix("jobqueue.") for message in found), sep=" ")
ids()
for jobqueue in {later}:
    with override_settings(JOBQUEUE=jobqueue):
        ids()
        ids(include_deployment_checks=True)
"""


@pytest.mark.processes
def test_w011_a_project_starts_and_is_told_whatever_its_settings() -> None:
    """From its start, and with others later, also as one that is deployed: W011 only
    there, and W010 only of modules that it names."""
    later = ({}, {"MODULES": ["jobs"]}, {"MODULES": ["job"]})
    script = PROJECT.format(jobqueue={"MODULES": 5, "LAESE": 5}, later=later)
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.check_output(command, env=environment, text=True).splitlines()
    assert told == ["E002 E003", *["", "W011"] * 2, "W010", "W010 W011"]


def test_w010_a_module_of_handlers_that_no_app_has() -> None:
    hints = [
        (["job"], "Did you mean 'jobs'?"),
        (
            ["jobs", "cron"],
            ("Handlers are searched for in the module 'cron' of each app"),
        ),
        (["jobs.mail"], "Did you mean 'jobs'?"),
        (["models.none"], "Handlers are searched for in the module 'models.none' of"),
    ]
    for modules, hint in hints:
        said = f"JOBQUEUE['MODULES'] names {modules[-1]!r}, which no installed app has."
        only(found_of({"MODULES": modules}, check_modules), "W010", said, hint)
    for modules in (["jobs"], [], ["models"], ["tasks", "jobs"]):
        assert found_of({"MODULES": modules}, check_modules) == []


def found_of_middleware(*paths: str) -> list[CheckMessage]:
    return found_of({"MIDDLEWARE": paths}, check_middleware)


def test_e009_w005_middleware_can_be_loaded_and_suits_the_handlers() -> None:
    ours, example = "django_jobqueue.middleware", "Give the dotted path of a factory, s"
    problems = [
        (f"{ours}.log_contxt", 'define a "log_contxt"', f"mean '{ours}.log_context'?"),
        ("django_jobqueue.midleware.localize", "No module", f"mean '{ours}.localize'?"),
        ("localize", "doesn't look like a module path", example),
        ("django_jobqueue.domain.states.KEPT", 'does not define a "KEPT"', example),
        ("django_jobqueue.conf.DAY", "is not a factory", ""),
    ]
    for path, problem, hint in problems:
        start = f"JOBQUEUE['MIDDLEWARE'] names {path!r}, which "
        only(found_of_middleware(path), "E009", start, problem, hint)
    add = jobs.add.declaration
    wrong = add._replace(policy=replace(add.policy, middleware=("shop.no.such",)))
    registry.add(wrong)
    try:
        of_type = f"@job(middleware=…) of {add.name!r} names 'shop.no"
        only(found_of_middleware(), "E009", of_type)
    finally:
        registry.add(add)
    sync = found_of_middleware("tests.execution.test_middleware.outer")
    said = only(sync, "W005", "wraps async handlers: ", jobs.aadd.name, "async_capable")
    assert jobs.add.name + "," not in said
    suit_both = {*middleware.__all__} - {"in_tenant"}
    assert found_of_middleware(*(f"{ours}.{name}" for name in suit_both)) == []
    with override_settings(JOBQUEUE={"CAPTURE": ["tenant"]}):
        only(check_middleware(None), "W005", f"'{ours}.in_tenant' is sync")


def test_e010_w006_a_database_in_which_nobody_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manual = {**connections.settings["default"], "AUTOCOMMIT": False}
    assert list(check_autocommit(None)) == []
    for alias, id in (("default", "E010"), ("reports", "W006")):
        with monkeypatch.context() as patch:
            patch.setitem(connections.settings, alias, manual)
            said = f"DATABASES[{alias!r}]['AUTOCOMMIT'] is False: "
            only(check_autocommit(None), id, said)
            if id == "E010":
                with pytest.raises(ImproperlyConfigured, match="without 'AUTOCOMMIT'"):
                    django_jobqueue.worker().start()
            assert found_of({"MODE": "immediate"}, check_autocommit) == []


def _a(job: str, status: str) -> None: ...
def _b(job: str, status: str) -> None: ...
def _c(job: str, status: str) -> None: ...
def _needs_more(job: str, order: int) -> None: ...


@contextmanager
def declared(
    **functions: tuple[Any, dict[str, Any]],
) -> Iterator[dict[str, Handler[..., Any]]]:
    """Job types ``checks.a`` and so on, of these functions and options, for a while."""
    made = {}
    try:
        for name, (function, options) in functions.items():
            made[name] = job(name=f"checks.{name}", **options)(function)
        yield made
    finally:
        for name in functions:
            registry.remove(f"checks.{name}")


def test_e011_job_types_that_follow_on_each_other_without_end() -> None:
    for option in FOLLOWER_OPTIONS:
        # One link by this option, the others by on_complete.
        two = {"a": (_a, {option: "checks.b"}), "b": (_b, {"on_complete": "checks.a"})}
        then = {"b": (_b, {"on_complete": "checks.c"})}
        three = {**two, **then, "c": (_c, {"on_complete": "checks.a"})}
        leads_there = {"start": (_c, {"on_success": ["checks.a", "checks.b"]})}
        for cycle in (two, three):
            names = " → ".join(f"checks.{name}" for name in [*cycle, "a"])
            said = f"These job types follow each other in a cycle: {names}."
            with declared(**cycle, **leads_there):
                only(check_followers(None), "E011", said)
    assert list(check_followers(None)) == []


def test_e011_a_cycle_by_the_follower_of_a_follower() -> None:
    with declared(b=(_b, {})) as made:
        first = {"on_success": made["b"].using(on_failure="checks.c")}
        with declared(a=(_a, first)):
            assert list(check_followers(None)) == []
            with declared(c=(_c, {"on_complete": "checks.a"})):
                cycle = "in a cycle: checks.a → checks.c → checks.a."
                only(check_followers(None), "E011", cycle)
    last = ["checks.c"]  # common followers are no cycle
    with declared(
        c=(_c, {}),
        b=(_b, {"on_failure": last, "on_complete": last}),
        a=(_a, {"on_success": ["checks.b", "checks.c"], "on_complete": last}),
    ):
        assert list(check_followers(None)) == []


def test_e012_a_follower_that_is_declared_later_and_needs_more() -> None:
    for option in FOLLOWER_OPTIONS:
        with declared(a=(_a, {option: ["checks.b", "checks.c"]}), b=(_b, {})):
            assert list(check_followers_fit(None)) == []
            with declared(c=(_needs_more, {})):
                only(
                    check_followers_fit(None),
                    "E012",
                    f"{option} of 'checks.a' must be a handler that needs nothing but "
                    "job, status, result, error_class and error_message: ",
                    f"{__name__}._needs_more() is missing 'order'.",
                )


def test_w012_a_follower_that_nobody_declares() -> None:
    for option in FOLLOWER_OPTIONS:  # at each depth
        with declared(b=(_b, {}), b2=(_c, {})) as made:
            follower = made["b"].using(on_success=["checks.b2", "checks.nobody"])
            said = f"{option} of 'checks.a' names the job type 'checks.nobody'"
            with declared(a=(_a, {option: follower})):
                only(check_followers_exist(None), "W012", said)
    said = "on_complete of 'checks.a' names the job type 'checks.bee', which has no "
    with declared(a=(_a, {"on_complete": "checks.bee"})):
        only(check_followers_exist(None), "W012", said)
        with declared(be=(_b, {})):
            hint = "Did you mean 'checks.be'?"
            only(check_followers_exist(None), "W012", said, hint)
        with declared(bee=(_b, {})):
            assert list(check_followers_exist(None)) == []
