"""Imports point down, and the engine never imports models."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
import tomllib

import pytest
from django.db import connection

from tests.architecture.source import PACKAGE, ROOT, imports, modules
from tests.architecture.structure import check_figures

WORKERS = ("workers/", "host/", "processes/", "execution/")
ENGINE = ("store/", "domain/", "enqueueing/", "operations/", *WORKERS)
MODELS = "django_jobqueue.models"

# Names that turn data into code or into trusted HTML, and why nothing here needs them.
DANGEROUS = {
    "mark_safe": "data of jobs reaches HTML by escaping alone",
    "pickle": "data of jobs is JSON",
    "marshal": "data of jobs is JSON",
    "shelve": "data of jobs is JSON",
    "yaml": "data of jobs is JSON",
    "import_string": "a name from a row is looked up in the registry",
    "import_module": "a name from a row is looked up in the registry",
    "resolve_name": "a name from a row is looked up in the registry",
    "__import__": "a name from a row is looked up in the registry",
    "eval": "no text is code",
    "exec": "no text is code",
}

# Where a name is imported, and why that is no job's choice.
BY_NAME = {
    ("import_string", "admin/lazy_page.py"): "a table of our own pages does",
    ("import_string", "contrib/alerts/channels.py"): "the settings name callables",
    ("import_string", "apps.py"): "the settings name the backend",
    ("import_module", "contrib/alerts/checks.py"): "the settings name callables",
    ("import_string", "contrib/alerts/checks.py"): "the settings name callables",
    ("import_string", "contrib/http/checks.py"): "the settings name authorizers",
    ("import_string", "contrib/http/access.py"): "the settings name authorizers",
    (
        "import_string",
        "execution/middleware_chain.py",
    ): "settings and code do",
    ("import_module", "checks/__init__.py"): "the settings name middleware",
    ("import_module", "text/lazy_names.py"): "a table of our own modules does",
    ("import_module", "rooms.py"): "a folder of ours does",
    ("resolve_name", "rooms.py"): "the app of a room does, in its code",
    ("marshal", "processes/shared_value.py"): "memory that only our processes write",
    ("mark_safe", "templatetags/jobqueue.py"): "a template rendered and escaped it",
}


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, in the folder of the project."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_no_file_of_the_engine_imports_models() -> None:
    guilty = [
        (module.path, name)
        for module in modules()
        if module.is_in(*ENGINE)
        for name in module.imports
        if name == MODELS or name.startswith(f"{MODELS}.")
    ]
    assert guilty == []


BEFORE_THE_REGISTRY = """
import sys
from django.conf import settings
settings.configure(INSTALLED_APPS=["django_jobqueue"], USE_TZ=True)
import {worker}
edges = {{"admin", "checks"}} & {{name.partition(".")[2] for name in sys.modules}}
assert not edges and "django.contrib.admin" not in sys.modules, edges
import {engine}
from django.apps import apps
assert not apps.ready
assert "django_jobqueue.models" not in sys.modules
print("imported")
"""


@pytest.mark.processes
def test_the_engine_is_imported_before_the_registry_without_edges_and_extras() -> None:
    """The rooms of a worker first, which need neither the admin nor the checks."""
    worker = [module.name for module in modules() if module.is_in(*WORKERS)]
    engine = [m.name for m in modules() if m.is_in("observers.py", *ENGINE)]
    assert len(engine) > len(worker) > 20
    done = python(
        f"import sys\nsys.modules.update(dict.fromkeys({[*OF_EXTRAS]}))\n"
        + BEFORE_THE_REGISTRY.format(
            worker=", ".join(worker), engine=", ".join(["django_jobqueue", *engine])
        )
    )
    assert (done.stdout, done.stderr) == ("imported\n", "")


PRODUCER = """
import sys
from django.conf import settings
settings.configure(
    INSTALLED_APPS={APPS}, USE_TZ=True, DATABASES={"default": {DATABASE}}
)
import django_jobqueue

@django_jobqueue.job(name="mail.send", max_attempts=3)
def send(order_id: int) -> None: ...

try:
    send.enqueue(order=7)  # before the registry of apps is ready
except django_jobqueue.InvalidArguments as error:
    print(error)
assert "django_jobqueue.models" not in sys.modules
import django
django.setup()
job = send.using(priority=5).enqueue(order_id=7)
django_jobqueue.enqueue("mail.send", {"order_id": 8})
send.enqueue_many([{"order_id": 9}])
names_before = {*dir(django_jobqueue)}
print(job.data)
names = [name.split(".") for name in sys.modules]
ours = [inner for outer, *inner in names if outer == "django_jobqueue" and inner]
print(sorted({room for room, *_ in ours} - {ROOMS}))
print(sorted({inner[1] for inner in ours if inner[0] == "store" and len(inner) > 2}))

all_names = django_jobqueue.__all__
assert names_before >= {*all_names}, names_before
for name in all_names:
    value = getattr(django_jobqueue, name)
    assert value.__name__ in (name, "Handler"), value
from django_jobqueue import *
for name in all_names:
    assert globals()[name] is getattr(django_jobqueue, name)
for name in ("cancel", "get_job", "replay"):
    assert globals()[name] is getattr(django_jobqueue.operations, name)
try:
    django_jobqueue.enqeue
except AttributeError as error:
    print(error)
"""
APP = ["django.contrib.contenttypes", "django_jobqueue"]
OF_A_PRODUCER = {
    "conf",
    "domain",
    "enqueueing",
    "exceptions",
    "observers",
    "retries",
    "signals",
    "store",
    "text",
}
OF_THE_APP = {"apps", "jobs", "logs", "models", "rooms"}


@pytest.mark.processes
@pytest.mark.usefixtures("transactional_db")
@pytest.mark.parametrize(
    ("apps", "rooms"), [([], OF_A_PRODUCER), (APP, OF_A_PRODUCER | OF_THE_APP)]
)
def test_a_process_that_only_enqueues_loads_nothing_else(
    apps: list[str], rooms: set[str]
) -> None:
    """A handler can be declared earlier; and each public name is there when it is asked
    for."""
    code = PRODUCER.replace("{APPS}", repr(apps)).replace("{ROOMS}", repr(rooms))
    done = python(code.replace("{DATABASE}", repr(connection.settings_dict)))
    assert (done.stdout.splitlines(), done.stderr) == (
        [
            "__main__.send() has no parameter 'order'. Did you mean 'order_id'?",
            "{'order_id': 7}",
            "[]",
            "['queue']",
            "module 'django_jobqueue' has no attribute 'enqeue'",
        ],
        "",
    )


WITH_THE_ADMIN = """
import sys
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=[
        *("django.contrib.admin", "django.contrib.auth", "django.contrib.messages"),
        *("django.contrib.contenttypes", "django.contrib.sessions", "django_jobqueue"),
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql"}},
    ROOT_URLCONF="__main__",
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    USE_TZ=True,
)
django.setup()
from django.contrib import admin
from django.core.checks import run_checks
from django.template import engines
from django.urls import path, resolve, reverse

def ours(of=""):
    prefix = "django_jobqueue" + of
    return sorted(name for name in sys.modules if name.startswith(prefix))

print(len(ours()))
urlpatterns = [path("admin/", admin.site.urls), path("shop/", print)]
import django_jobqueue.management.commands.runworkers
import django_jobqueue.host.maintenance.host_maintenance
import django_jobqueue.workers.worker_main
from django_jobqueue import rooms
for path in rooms.named("chunked_work").values():
    rooms.load(path)
print(len(ours()))
import django_jobqueue.management.commands.jobqueue
engines["django"].from_string("x").render()
assert resolve("/shop/").func is print
run_checks(tags=["jobqueue"])
print(*ours(".admin"))
assert reverse("admin:jobqueue_worker_changelist") == "/admin/jobqueue/worker/"
assert len(ours(".admin")) > 100
"""


@pytest.mark.processes
def test_a_process_loads_pages_of_the_admin_when_it_needs_an_address_of_one() -> None:
    """Not at its start, nor for a template, a path elsewhere or a command of ours."""
    done = python(WITH_THE_ADMIN)
    assert done.stderr == ""
    at_start, of_a_worker, pages = done.stdout.splitlines()
    assert pages == "django_jobqueue.admin django_jobqueue.admin.lazy_page"
    check_figures(
        modules_that_a_producer_loads=int(at_start),
        modules_that_a_worker_loads=int(of_a_worker),
    )


SET_UP = """
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django_jobqueue"],
    JOBQUEUE={"MODE": "immediate", "MODULES": ["jobs", "nowhere"]},
    USE_TZ=True,
)
django.setup()
from django.core.checks import run_checks
from django_jobqueue import job
from django_jobqueue.domain.registry import registry
print([declaration.name for declaration in registry])

@job(name="a", on_complete="b")
def a(job: str, status: str) -> None: ...
@job(name="b", on_complete="a")
def b(job: str, status: str) -> None: ...

def ids(**how):
    found = [message.id for message in run_checks(**how)]
    return sorted(id for id in found if id.startswith("jobqueue"))

print(ids())
print(ids())
print(ids(include_deployment_checks=True))
print(ids(tags=["jobqueue"]))
"""


@pytest.mark.processes
def test_a_project_has_the_checks_and_the_jobs_of_the_app_after_its_start() -> None:
    """Whatever else imports them here; and each check runs once at a time."""
    done = python(SET_UP)
    assert (done.stdout, done.stderr) == (
        "['jobqueue.bulk']\n"
        "['jobqueue.E011', 'jobqueue.W010']\n"
        "['jobqueue.E011', 'jobqueue.W010']\n"
        "['jobqueue.E011', 'jobqueue.W004', 'jobqueue.W010']\n"
        "['jobqueue.E011', 'jobqueue.W010']\n",
        "",
    )


def test_every_check_registers() -> None:
    named = {
        function.name: [ast.unparse(one) for one in function.decorator_list]
        for module in modules()
        if module.is_in("checks/")
        for function in module.functions
        if function.name.startswith("check_")
    }
    assert len(named) > 10
    assert [
        name
        for name, decorators in named.items()
        if not any(one.startswith("register(") for one in decorators)
    ] == []


# What an extra of ours installs, and who may need it.
OF_EXTRAS = {
    "ninja": (
        *(
            "contrib/http/api.py",
            "contrib/http/verb_routes.py",
            "contrib/http/endpoint.py",
            "contrib/http/job_routes.py",
        ),
        *(
            "contrib/http/list_routes.py",
            "contrib/http/replay_routes.py",
        ),
        "contrib/remote/worker_routes.py",
    ),
    "pydantic": (
        *("contrib/http/verb_routes.py", "contrib/http/endpoint.py"),
        "contrib/http/job_routes.py",
        *("contrib/http/list_routes.py", "contrib/http/schemas.py"),
        *("contrib/http/type_schemas.py", "contrib/http/worker_schemas.py"),
        "contrib/remote/worker_schemas.py",
    ),
    "httpx": (*("contrib/remote/clients.py", "contrib/remote/delivery.py"),),
    "textual": ("contrib/console/top_screen/app.py",),
    "opentelemetry": ("contrib/telemetry/otel.py",),
    "django_tenants": ("middleware/handler_context.py",),
    "prometheus_client": ("metrics/enqueued_jobs.py", "metrics/exposition.py"),
    "sentry_sdk": (
        "contrib/telemetry/sentry.py",
        "contrib/telemetry/sentry_checkins.py",
        "contrib/telemetry/sentry_events.py",
        "contrib/telemetry/sentry_spans.py",
    ),
}


@pytest.mark.dear
def test_no_module_of_the_core_imports_an_extra() -> None:
    importers: dict[str, set[str]] = {extra: set() for extra in OF_EXTRAS}
    for module in modules():
        for name in module.imports:
            extra = name.partition(".")[0]
            if extra in importers:
                importers[extra].add(module.path)
    assert importers == {extra: {*paths} for extra, paths in OF_EXTRAS.items()}


# A process that only enqueues loads these, or one that only renders a template, and
# needs little of what they lead to. The last one leads to a package that is not
# installed everywhere.
MAY_IMPORT_LATE = (
    *("apps.py", "__init__.py", "templatetags/jobqueue.py"),
    *("contrib/schedules/apps.py", "contrib/console/top_command.py"),
)


@pytest.mark.dear
def test_only_what_every_process_loads_imports_our_modules_inside_of_functions() -> (
    None
):
    guilty = [
        (module.path, function.name, name)
        for module in modules()
        if module.path not in MAY_IMPORT_LATE
        for function in module.functions
        for name in imports(function)
        if name.startswith(PACKAGE.name)
    ]
    assert guilty == []


def test_each_part_of_the_core_is_kept_from_the_features() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    (of_core,) = (
        one
        for one in contracts["importlinter"]["contracts"]
        if one["name"] == "The core knows no feature"
    )
    parts = {one.path.partition("/")[0].removesuffix(".py") for one in modules()}
    others = {"__init__", "contrib", "migrations"}
    assert {one.rpartition(".")[2] for one in of_core["source_modules"]} == (
        parts - others
    )


@pytest.mark.processes
def test_the_contracts_of_the_import_linter_hold() -> None:
    if importlib.util.find_spec("importlinter") is None:
        pytest.skip("needs import-linter, which is in the extra 'lint'")
    done = python(
        "import sys\n"
        "from importlinter.cli import lint_imports\n"
        "sys.exit(lint_imports(no_cache=True))"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.dear
def test_nothing_turns_data_into_code_or_trusted_html() -> None:
    """But where BY_NAME says so; and nothing is said there in vain."""
    used = {
        (name, module.path)
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
        for name in _names(node) & DANGEROUS.keys()
    }
    assert used - BY_NAME.keys() == set(), DANGEROUS
    assert BY_NAME.keys() - used == set()


def test_no_text_is_called_safe_html_by_hand() -> None:
    guilty = [
        (module.path, node.lineno)
        for module in modules()
        for name, node in module.calls
        if name.endswith(("SafeString", "SafeText"))
    ]
    assert guilty == []


def test_only_one_module_asks_for_the_time() -> None:
    """Django's ``timezone.now()`` has no zone where USE_TZ is false."""
    asks = ("timezone.now", "timezone.localtime", "timezone.localdate", "datetime.now")
    guilty = [
        (module.path, node.lineno)
        for module in modules()
        for name, node in module.calls
        if name in asks
        and ast.unparse(node) != "datetime.now(UTC)"
        and module.path != "text/timezones.py"
    ]
    assert guilty == []


def _names(node: ast.Name | ast.Attribute | ast.alias) -> set[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
    return set(node.name.split("."))
