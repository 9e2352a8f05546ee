"""Features are rooms: who does not install one has nothing of it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from argparse import ArgumentError

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import rooms
from django_jobqueue.management.jobqueue.parsers import Parser, Parsers
from django_jobqueue.management.jobqueue.subcommand import Table
from tests.support.commands import ROOT

DJANGOS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.admin"]
DJANGOS += ["django.contrib.messages", "django.contrib.sessions"]
HTTP, REMOTE = "django_jobqueue.contrib.http", "django_jobqueue.contrib.remote"
# Tables and subcommands, by the feature.
OFFERS = {
    "django_jobqueue.contrib.alerts": (
        "jobqueue_alerts_alert jobqueue_alerts_alertdelivery",
        "alerts",
    ),
    "django_jobqueue.contrib.console": (
        "jobqueue_console_savedview jobqueue_console_jobsearch",
        "top bench",
    ),
    HTTP: ("jobqueue_http_token", "token"),
    "django_jobqueue.contrib.importing": ("", "import"),
    "django_jobqueue.contrib.leases": ("jobqueue_leases_lease", "leases"),
    "django_jobqueue.contrib.privacy": ("jobqueue_privacy_erasure", "personal-data"),
    REMOTE: ("", ""),
    "django_jobqueue.contrib.schedules": (
        "jobqueue_schedules_schedule jobqueue_schedules_firing",
        "schedules schedule",
    ),
    "django_jobqueue.contrib.transfer": ("", "dump load move"),
}
FEATURES = tuple(OFFERS)
PROJECT = """
import sys
import django
from django.conf import settings
settings.configure(
    INSTALLED_APPS={apps!r},
    DATABASES={{"default": {{"ENGINE": "django.db.backends.postgresql", "NAME": "x"}}}},
    SECRET_KEY="x" * 50,
    ROOT_URLCONF="tests.contrib.test_rooms",
    TEMPLATES=[{{
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {{"context_processors": [
            "django.template.context_processors.request",
            "django.contrib.auth.context_processors.auth",
            "django.contrib.messages.context_processors.messages",
        ]}},
    }}],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    USE_TZ=True,
)
django.setup()
from django.core.management import call_command
call_command("check", fail_level="WARNING")
if {http!r} in settings.INSTALLED_APPS:
    import django_jobqueue.contrib.http.urls
    from django_jobqueue.contrib.http.endpoint import router
    views = router.path_operations.values()
    names = {{one.operation_id for view in views for one in view.operations}}
    of_remote = {{"claim_jobs", "create_job_type"}}
    has_remote = {remote!r} in settings.INSTALLED_APPS
    assert names & of_remote == (of_remote if has_remote else set())
print(*sorted({{n.split(".")[2] for n in sys.modules if n.startswith({contrib!r})}}))
from django_jobqueue import rooms
print(*(model._meta.db_table for room in rooms.rooms()[1:]
        for model in room.get_models()))
from django_jobqueue.management.commands.jobqueue import SUBCOMMANDS
print(*(name for name in {subcommands!r} if name in SUBCOMMANDS))
"""
urlpatterns: list[object] = []


def test_every_feature_is_known() -> None:
    folders = (ROOT / "django_jobqueue" / "contrib").iterdir()
    found = {path.name for path in folders if (path / "apps.py").exists()}
    assert {f"django_jobqueue.contrib.{name}" for name in found} == set(FEATURES)
    assert [room.name for room in rooms.rooms()] == ["django_jobqueue", *FEATURES]


NEEDS = {room.name: room.needs for room in rooms.rooms()}


@pytest.mark.processes
@pytest.mark.parametrize(
    "installed", [(), *((*NEEDS.get(one, ()), one) for one in FEATURES), FEATURES]
)
def test_a_project_has_what_it_installs_and_nothing_else(
    installed: tuple[str, ...],
) -> None:
    code = PROJECT.format(
        apps=[*DJANGOS, "django_jobqueue", *installed],
        contrib="django_jobqueue.contrib.",
        subcommands=" ".join(names for _tables, names in OFFERS.values()).split(),
        http=HTTP,
        remote=REMOTE,
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    _checked, loaded, has_tables, knows = done.stdout.splitlines()
    names = {name.rpartition(".")[2] for name in installed}
    assert set(loaded.split()) == names
    offers = [OFFERS[name] for name in installed]
    assert has_tables.split() == " ".join(tables for tables, _ in offers).split()
    assert {*knows.split()} == {*" ".join(names for _, names in offers).split()}


def test_styles_of_pages_are_those_of_every_room() -> None:
    """Django's class of a page names the app: app-jobqueue_schedules."""
    for sheet in (ROOT / "django_jobqueue").rglob("*.css"):
        assert ".app-jobqueue" not in sheet.read_text(), sheet


def leave_out_features(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [config for config in apps.get_app_configs() if config.name not in FEATURES]
    monkeypatch.setattr(apps, "get_app_configs", lambda: there)
    monkeypatch.setattr(apps, "is_installed", lambda name: name not in FEATURES)


def test_whoever_asks_for_an_absent_one_is_told_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_out_features(monkeypatch)
    assert {room.name for room in rooms.absent()} == set(FEATURES)
    assert [room.name for room in rooms.rooms()] == ["django_jobqueue"]
    hint = f"Add '{HTTP}' to INSTALLED_APPS"
    with pytest.raises(ArgumentError, match=hint):
        assert "token" in Parsers(Table({}), "jobqueue", Parser)
    with pytest.raises(ImproperlyConfigured, match=f"add '{HTTP}' to INSTALLED_APPS"):
        runpy.run_path(str(ROOT / "django_jobqueue/contrib/http/urls.py"))
