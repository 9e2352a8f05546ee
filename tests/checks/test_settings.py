"""Checks of the settings: E001–E007, E009–E012 and W001–W013, with hints."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, Error, Warning, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections
from django.db.backends.postgresql import psycopg_any
from django.test import modify_settings, override_settings

import django_jobqueue
from django_jobqueue import job, middleware
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
from tests.sample import jobs


def found(**jobqueue: Any) -> list[CheckMessage]:
    """What the checks say about these settings."""
    with override_settings(JOBQUEUE=jobqueue):
        return list(check_settings(None))


def one(**jobqueue: Any) -> CheckMessage:
    (message,) = found(**jobqueue)
    return message


def test_good_settings_are_not_talked_about() -> None:
    assert found() == []
    assert found(LEASE=30, QUEUES=["mail"], RETENTION={"failed": None}) == []


@pytest.mark.parametrize(
    "name", ["JOB_QUEUE", "DJANGO_JOBQUEUE", "DJANGO_JOB_QUEUE", "JOBQUEUES", "JOBQUUE"]
)
def test_w013_a_dict_of_settings_under_another_name(name: str) -> None:
    with override_settings(**{name: {"MODE": "immediate"}}):
        messages = run_checks(tags=["jobqueue"])
    assert [message.id for message in messages] == ["jobqueue.W013"], messages
    (message,) = messages
    assert isinstance(message, Warning)
    assert message.msg == (
        f"The setting {name} looks like those of the job queue, which reads JOBQUEUE "
        "alone."
    )
    assert message.hint == f"Rename {name} to JOBQUEUE."


def test_apps_that_are_loaded_once_more_double_no_message() -> None:
    with modify_settings(INSTALLED_APPS={"remove": "rangefilter"}):
        pass
    with override_settings(JOB_QUEUE={"MODE": "immediate"}):
        assert len(run_checks(tags=["jobqueue"])) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOB_QUEUE", {"URL": "amqp://"}),
        ("JOB_QUEUE", "mail"),
        ("RQ_QUEUES", {"MODE": 1}),
        ("QUEUE", {"MODE": 1}),
        ("Q_CLUSTER", {"LEASE": 1}),
    ],
)
def test_w013_settings_of_others_are_not_talked_about(name: str, value: object) -> None:
    with override_settings(**{name: value}):
        assert run_checks(tags=["jobqueue"]) == []


def test_all_checks_of_the_job_queue_pass_in_these_tests() -> None:
    assert run_checks(tags=["jobqueue"]) == []
    call_command("check", "--tag", "jobqueue", "--fail-level", "WARNING")


def test_without_settings_there_is_nothing_to_say() -> None:
    with override_settings():
        from django.conf import settings

        del settings.JOBQUEUE
        assert list(check_settings(None)) == []


@pytest.mark.parametrize("given", [None, "LEASE", ["LEASE"], 5])
def test_e001_the_settings_are_a_dict(given: object) -> None:
    with override_settings(JOBQUEUE=given):
        (message,) = check_settings(None)
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E001"
    assert message.msg == f"JOBQUEUE must be a dict, not {given!r}."
    assert message.hint == 'For example JOBQUEUE = {"LEASE": 15}.'


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("LAESE", "LEASE"),
        ("lease", "LEASE"),
        ("THREAD", "THREADS"),
        ("QUEUE", "QUEUES"),
    ],
)
def test_e002_an_unknown_setting_is_told_with_the_one_that_was_meant(
    name: str, meant: str
) -> None:
    message = one(**{name: 5})
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E002"
    assert message.msg == f"JOBQUEUE[{name!r}] is no setting of the job queue."
    assert message.hint == f"Did you mean {meant!r}?"


def test_e002_a_setting_like_no_other_is_told_with_all_that_there_are() -> None:
    message = one(ZZZZZ=5)
    assert message.id == "jobqueue.E002"
    assert message.hint == f"The settings are {', '.join(sorted(Conf.settings))}."


def test_e002_a_key_that_is_no_name_is_told() -> None:
    with override_settings(JOBQUEUE={5: 5}):
        (message,) = check_settings(None)
    assert message.id == "jobqueue.E002"
    assert message.msg == "JOBQUEUE[5] is no setting of the job queue."


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("LEASE", "15", "must be a number of seconds, not '15'"),
        ("LEASE", 1, "must be at least 2, not 1"),
        ("QUEUES", "mail", "must be a list of strings, not 'mail'"),
        ("LISTEN", "yes", "must be True or False, not 'yes'"),
        ("THREADS", True, "must be a whole number, not True"),
    ],
)
def test_e003_a_wrong_value_is_told_with_what_the_setting_means(
    name: str, value: Any, problem: str
) -> None:
    message = one(**{name: value})
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E003"
    assert message.msg == f"JOBQUEUE[{name!r}] {problem}."
    assert message.hint == Conf.settings[name].help


def test_e003_a_name_that_no_queue_can_have_is_told() -> None:
    message = one(QUEUES=["mail", "bulk, slow"])
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E003"
    assert message.msg == (
        "JOBQUEUE['QUEUES'] has the name of no queue: one must have no space, comma or "
        "control character: 'bulk, slow'."
    )
    assert message.hint == Conf.settings["QUEUES"].help


def test_every_mistake_is_told_at_once() -> None:
    messages = found(LEASE="x", THREADS=-1, NONSENSE=1)
    assert sorted(message.id or "" for message in messages) == [
        "jobqueue.E002",
        "jobqueue.E003",
        "jobqueue.E003",
    ]


def test_e004_a_worker_that_could_run_nothing() -> None:
    message = one(THREADS=0, ASYNC_SLOTS=0)
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E004"
    assert message.msg == (
        "JOBQUEUE['THREADS'] and JOBQUEUE['ASYNC_SLOTS'] are both 0, so a worker could "
        "run nothing."
    )
    assert message.hint == "Leave one of them above 0."
    assert found(THREADS=0, ASYNC_SLOTS=1) == []
    assert found(THREADS=1, ASYNC_SLOTS=0) == []


def test_w008_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    with override_settings(JOBQUEUE={"DUMP_DIR": "/not/there"}):
        (message,) = check_dump_folder(None)
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W008"
    assert message.msg == (
        "JOBQUEUE['DUMP_DIR'] ('/not/there') cannot be written to: No such file or "
        "directory."
    )
    assert "The log lists the jobs that a stop cuts off." in str(message.hint)
    for folder in (str(tmp_path), None, ""):
        with override_settings(JOBQUEUE={"DUMP_DIR": folder}):
            assert list(check_dump_folder(None)) == []


def test_w001_a_statement_that_may_outlast_the_lease() -> None:
    message = one(STATEMENT_TIMEOUT=15, LEASE=15)
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W001"
    assert message.msg == (
        "JOBQUEUE['STATEMENT_TIMEOUT'] (15 s) is not below JOBQUEUE['LEASE'] (15 s): "
        "one slow statement could cost a worker its claims."
    )
    assert message.hint == "Make LEASE longer, or STATEMENT_TIMEOUT shorter."
    assert found(STATEMENT_TIMEOUT=14, LEASE=15) == []


def test_w017_a_port_for_metrics_without_what_writes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(METRICS_PORT=0) == []
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    message = one(METRICS_PORT=0)
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W017"
    assert "/metrics is answered with 501" in message.msg
    assert 'pip install "django-jobqueue[metrics]"' in message.hint
    assert found(METRICS_PORT=None) == []


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0"])
def test_w018_a_network_of_everybody_may_read_metrics(network: str) -> None:
    assert found(METRICS_ALLOW=["10.0.0.0/8"]) == []
    message = one(METRICS_ALLOW=["10.0.0.0/8", network])
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W018"


def test_w019_enqueues_to_count_without_what_counts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert found(METRICS_ENQUEUED=True) == []
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    message = one(METRICS_ENQUEUED=True)
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W019"
    assert found(METRICS_ENQUEUED=False) == []


@pytest.mark.parametrize("port", [-1, 65_536])
def test_e003_a_port_that_does_not_exist(port: int) -> None:
    message = one(METRICS_PORT=port)
    assert message.msg == (
        f"JOBQUEUE['METRICS_PORT'] must be from 0 to 65535, not {port}."
    )


def test_e005_a_database_that_is_not_there_is_told_with_the_one_that_was_meant() -> (
    None
):
    with override_settings(JOBQUEUE={"DATABASE": "defualt"}):
        (message,) = check_database_setting(None)
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E005"
    assert (
        message.msg == "JOBQUEUE['DATABASE'] is 'defualt', which is not in DATABASES."
    )
    assert message.hint == "Did you mean 'default'?"


def test_e005_a_database_like_no_other_is_told_with_all_that_there_are() -> None:
    with override_settings(JOBQUEUE={"DATABASE": "zzz"}):
        (message,) = check_database_setting(None)
    assert message.id == "jobqueue.E005"
    assert message.hint == "The aliases are default."


@pytest.mark.parametrize("given", [5, ["default"]])
def test_a_database_that_is_no_name_is_told_by_e003_alone(given: Any) -> None:
    with override_settings(JOBQUEUE={"DATABASE": given}):
        messages = run_checks(tags=["jobqueue"])
    assert [message.id for message in messages] == ["jobqueue.E003"]


def test_e006_a_database_that_is_not_postgresql() -> None:
    with database("other", ENGINE="django.db.backends.sqlite3", NAME=":memory:"):
        (message,) = check_database_setting(None)
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E006"
    assert message.msg == (
        "The job queue needs PostgreSQL; the database 'other' is sqlite."
    )
    assert message.hint == (
        "Use django.db.backends.postgresql for it, or name another alias in "
        "JOBQUEUE['DATABASE']."
    )


@pytest.mark.parametrize("mode", ["immediate", "on_commit"])
def test_a_mode_without_queue_needs_no_postgresql(mode: str) -> None:
    with (
        database("other", ENGINE="django.db.backends.sqlite3", NAME=":memory:"),
        override_settings(JOBQUEUE={"DATABASE": "other", "MODE": mode}),
    ):
        assert run_checks(tags=["jobqueue"]) == []


def test_w004_a_mode_for_tests_where_the_project_is_deployed() -> None:
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        found = run_checks(tags=["jobqueue"], include_deployment_checks=True)
    (message,) = found
    assert message.id == "jobqueue.W004"
    assert message.msg.startswith("JOBQUEUE['MODE'] is 'immediate': jobs run in the")
    assert message.hint == "Leave MODE out where the project is deployed."
    assert run_checks(tags=["jobqueue"], include_deployment_checks=True) == []


def test_e007_django_with_the_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psycopg_any, "is_psycopg3", False)
    (message,) = check_database_setting(None)
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E007"
    assert message.msg == "The job queue needs psycopg 3, but Django uses psycopg2."
    assert message.hint is not None
    assert message.hint.startswith('Install "psycopg[binary]"')


CHECK = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django_jobqueue"],
    USE_TZ=True,
    JOBQUEUE={jobqueue},
    DATABASES={{"default": {{"ENGINE": "django.db.backends.{engine}", "NAME": "x"}}}},
)
django.setup()
from django.core.checks import run_checks
found = run_checks(tags=["jobqueue"], include_deployment_checks={deploy})
print(*sorted(message.id for message in found))
"""


def project(
    jobqueue: object, engine: str = "postgresql", *, deploy: bool = False
) -> list[str]:
    """What a project with these settings is told, from its very start."""
    code = CHECK.format(jobqueue=jobqueue, engine=engine, deploy=deploy)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_a_project_with_a_mistake_starts_and_is_told() -> None:
    assert project({"LAESE": 5}) == ["jobqueue.E002"]


def test_a_project_on_another_database_starts_and_is_told() -> None:
    assert project({}, engine="sqlite3") == ["jobqueue.E006"]


@pytest.mark.parametrize(
    ("jobqueue", "ids"),
    [
        pytest.param(["LEASE"], ["jobqueue.E001"], id="no dict"),
        pytest.param({"MODULES": 5}, ["jobqueue.E003"], id="no modules"),
    ],
)
def test_a_project_with_a_grave_mistake_starts_and_is_told(
    jobqueue: object, ids: list[str]
) -> None:
    assert project(jobqueue) == ids


@pytest.mark.parametrize(
    ("modules", "hint"),
    [
        (["job"], "Did you mean 'jobs'?"),
        (["jobs", "cron"], "Handlers are looked for in the module 'cron' of each app"),
        (["jobs.mail"], "Did you mean 'jobs'?"),
        (["models.none"], "Handlers are looked for in the module 'models.none' of"),
    ],
)
def test_w010_a_module_of_handlers_that_no_app_has(
    modules: list[str], hint: str
) -> None:
    with override_settings(JOBQUEUE={"MODULES": modules}):
        (message,) = check_modules(None)
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W010"
    missing = modules[-1]
    assert message.msg == (
        f"JOBQUEUE['MODULES'] names {missing!r}, which no installed app has."
    )
    assert str(message.hint).startswith(hint)


@pytest.mark.parametrize("modules", [["jobs"], [], ["models"], ["tasks", "jobs"]])
def test_w010_a_module_that_some_app_has_is_not_talked_about(
    modules: list[str],
) -> None:
    with override_settings(JOBQUEUE={"MODULES": modules}):
        assert list(check_modules(None)) == []


def test_w010_a_new_project_that_has_no_handlers_yet_is_not_told_of_the_default() -> (
    None
):
    assert project({}) == project({"MODULES": ["jobs"]}) == []
    assert project({"MODULES": ["job"]}) == ["jobqueue.W010"]


def test_w011_a_deployed_project_without_handlers() -> None:
    assert project({}, deploy=True) == ["jobqueue.W011"]


def found_of_middleware(*paths: str) -> list[CheckMessage]:
    with override_settings(JOBQUEUE={"MIDDLEWARE": paths}):
        return list(check_middleware(None))


@pytest.mark.parametrize(
    ("path", "problem", "hint"),
    [
        (
            "django_jobqueue.middleware.log_contxt",
            'does not define a "log_contxt"',
            "Did you mean 'django_jobqueue.middleware.log_context'?",
        ),
        (
            "django_jobqueue.midleware.localize",
            "No module named",
            "Did you mean 'django_jobqueue.middleware.localize'?",
        ),
        (
            "localize",
            "doesn't look like a module path",
            "Give the dotted path of a factory, such as 'shop.middleware.tenant'.",
        ),
        (
            "django_jobqueue.domain.states.KEPT",
            'does not define a "KEPT"',
            "Give the dotted path of a factory, such as 'shop.middleware.tenant'.",
        ),
    ],
)
def test_e009_middleware_can_be_loaded(path: str, problem: str, hint: str) -> None:
    (message,) = found_of_middleware(path)
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E009"
    assert message.msg.startswith(f"JOBQUEUE['MIDDLEWARE'] names {path!r}, which ")
    assert problem in message.msg
    assert message.hint == hint


def test_e009_what_is_no_function_is_no_middleware() -> None:
    (message,) = found_of_middleware("django_jobqueue.conf.DAY")
    assert message.id == "jobqueue.E009"
    assert "is no factory" in message.msg


def test_e009_names_the_job_type_that_names_it() -> None:
    add = jobs.add.declaration
    wrong = replace(add, policy=replace(add.policy, middleware=("shop.no.such",)))
    registry.add(wrong)
    try:
        (message,) = found_of_middleware()
    finally:
        registry.add(add)
    assert message.msg.startswith(f"@job(middleware=…) of {add.name!r} names 'shop.no")


def test_w005_a_sync_middleware_around_async_handlers() -> None:
    (message,) = found_of_middleware("tests.execution.test_middleware.outer")
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W005"
    assert "wraps async handlers: " in message.msg
    assert jobs.aadd.name in message.msg
    assert jobs.add.name + "," not in message.msg
    assert "async_capable" in message.hint


def test_ours_suits_every_handler() -> None:
    paths = [f"django_jobqueue.middleware.{name}" for name in middleware.__all__]
    assert found_of_middleware(*paths) == []


@pytest.mark.parametrize(
    ("alias", "kind", "id"),
    [("default", Error, "jobqueue.E010"), ("reports", Warning, "jobqueue.W006")],
)
def test_e010_and_w006_a_database_in_which_nobody_commits(
    alias: str, kind: type[CheckMessage], id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    manual = {**connections.settings["default"], "AUTOCOMMIT": False}
    assert list(check_autocommit(None)) == []
    monkeypatch.setitem(connections.settings, alias, manual)
    (message,) = check_autocommit(None)
    assert (type(message), message.id) == (kind, id)
    assert message.msg.startswith(f"DATABASES[{alias!r}]['AUTOCOMMIT'] is False: ")
    if kind is Error:
        with pytest.raises(ImproperlyConfigured, match="without 'AUTOCOMMIT': False"):
            django_jobqueue.worker().start()
    with override_settings(JOBQUEUE={"MODE": "immediate"}):
        assert list(check_autocommit(None)) == []


def _a(job: str, status: str) -> None: ...
def _b(job: str, status: str) -> None: ...
def _c(job: str, status: str) -> None: ...


@pytest.mark.parametrize("option", FOLLOWER_OPTIONS)
@pytest.mark.parametrize("length", [2, 3])
def test_e011_job_types_that_follow_on_each_other_without_end(
    length: int, option: str
) -> None:
    names = ["checks.a", "checks.b", "checks.c"][:length]
    try:
        for n, function in enumerate((_a, _b, _c)[:length]):
            # One link by this option, the others by on_complete.
            link: Any = {option if n == 0 else "on_complete": names[(n + 1) % length]}
            job(name=names[n], **link)(function)
        leads_there = job(name="checks.start", on_success=[names[0], names[1]])(_c)
        (message,) = check_followers(None)
    finally:
        for name in (*names, leads_there.name):
            registry.remove(name)
    assert message.id == "jobqueue.E011"
    assert message.msg == (
        "These job types follow each other in a cycle: "
        f"{' → '.join([*names, names[0]])}."
    )
    assert list(check_followers(None)) == []


def test_e011_a_cycle_by_the_follower_of_a_follower() -> None:
    try:
        second = job(name="checks.b")(_b)
        first = job(name="checks.a", on_success=second.using(on_failure="checks.c"))(_a)
        assert list(check_followers(None)) == []
        job(name="checks.c", on_complete=first)(_c)
        (message,) = check_followers(None)
    finally:
        for name in ("checks.a", "checks.b", "checks.c"):
            registry.remove(name)
    assert message.msg.endswith("in a cycle: checks.a → checks.c → checks.a.")


def test_e011_types_with_common_followers_are_no_cycle() -> None:
    try:
        last = job(name="checks.c")(_c)
        middle = job(name="checks.b", on_failure=last, on_complete=last)(_b)
        job(name="checks.a", on_success=[middle, last], on_complete=last)(_a)
        assert list(check_followers(None)) == []
    finally:
        for name in ("checks.a", "checks.b", "checks.c"):
            registry.remove(name)


@pytest.mark.parametrize("option", FOLLOWER_OPTIONS)
def test_e012_a_follower_that_is_declared_later_and_needs_more(option: str) -> None:
    try:
        link: Any = {option: ["checks.b", "checks.c"]}
        job(name="checks.a", **link)(_a)
        job(name="checks.b")(_b)
        assert list(check_followers_fit(None)) == []
        job(name="checks.c")(_needs_more)
        (message,) = check_followers_fit(None)
    finally:
        for name in ("checks.a", "checks.b", "checks.c"):
            registry.remove(name)
    assert message.id == "jobqueue.E012"
    assert message.msg == (
        f"{option} of 'checks.a' must be a handler that needs nothing but job, status, "
        "result, error_class and error_message: tests.checks.test_settings."
        "_needs_more() is missing 'order'."
    )


def _needs_more(job: str, order: int) -> None: ...


@pytest.mark.parametrize("option", FOLLOWER_OPTIONS)
def test_w012_each_option_and_each_depth_is_checked(option: str) -> None:
    try:
        known = job(name="checks.b")(_b)
        deep: Any = {option: known.using(on_success=["checks.b2", "checks.nobody"])}
        job(name="checks.a", **deep)(_a)
        job(name="checks.b2")(_c)
        (message,) = check_followers_exist(None)
    finally:
        for name in ("checks.a", "checks.b", "checks.b2"):
            registry.remove(name)
    assert message.msg.startswith(f"{option} of 'checks.a' names the job type 'checks.")


def test_w012_a_follower_that_nobody_declares() -> None:
    try:
        job(name="checks.a", on_complete="checks.bee")(_a)
        (quarantined,) = check_followers_exist(None)
        job(name="checks.be")(_b)
        (message,) = check_followers_exist(None)
        registry.remove("checks.be")
        job(name="checks.bee")(_b)
        assert list(check_followers_exist(None)) == []
    finally:
        for name in ("checks.a", "checks.be", "checks.bee"):
            registry.remove(name)
    assert (type(message), message.id) == (Warning, "jobqueue.W012")
    assert message.msg == (
        "on_complete of 'checks.a' names the job type 'checks.bee', which has no "
        "handler here."
    )
    assert message.hint == "Did you mean 'checks.be'?"
    assert quarantined.id == "jobqueue.W012"
