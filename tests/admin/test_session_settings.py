"""Every page, and every command that reads, under settings that a database or a role of
a project may have."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from pytest_django import DjangoDbBlocker

from tests.admin.pages import MODELS, list_of, page_of
from tests.admin.scene import Scene
from tests.support.selection import some_slow

COMMANDS: Final = (
    *("status", "doctor", "metrics", "health", "types", "limits", "workers", "hosts"),
    *("schedules", "failures", "alerts", "operations", "leases", "token"),
    "status --format json",
    "types tests.sample.add",
    "failures --format json",
    "dump --secrets --yes",
    "override tests.sample.add --timeout 33.5",
    "types tests.sample.add --format json",
    "override tests.sample.add --clear",
)
# Of each setting another value than the usual one, with which Django still works.
SETTINGS: Final = {
    "timezone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "extra_float_digits": "0",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "lc_numeric": "C",
    "quote_all_identifiers": "on",
    "enable_indexscan": "off",
    "from_collapse_limit": "1",
    "jit": "on",
    "xmloption": "document",
    "transform_null_equals": "on",
    "array_nulls": "off",
    "work_mem": "64kB",
    "plan_cache_mode": "force_generic_plan",
    "statement_timeout": "60s",
    "default_statistics_target": "1",
}
STYLES: Final = ("iso_8601", "sql_standard", "postgres_verbose")


@pytest.fixture
def style(
    request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Django's connection, as that of a role with these settings."""
    settings = {**SETTINGS, "intervalstyle": request.param}
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    before = connection.settings_dict["OPTIONS"]
    with django_db_blocker.unblock():
        connection.close()
        connection.settings_dict["OPTIONS"] = {**before, "options": options}
        yield request.param
        connection.settings_dict["OPTIONS"] = before
        connection.close()


@pytest.mark.parametrize("style", some_slow(STYLES, STYLES[:1]), indirect=True)
def test_pages_and_commands_work_under_other_settings(
    style: str, anna: Client, scene: Scene
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW intervalstyle")
        assert cursor.fetchone() == (style,)
    addresses = ["/admin/jobqueue/overview/", *map(list_of, (*MODELS, "auditentry"))]
    for model, keys in (
        ("archivedjob", scene.archived),
        ("queuedjob", scene.queued),
        ("worker", scene.workers),
        ("host", scene.hosts),
        ("schedule", scene.schedules),
    ):
        addresses += [page_of(model, key) for key in [*keys.values()][:3]]
    addresses += [page_of("jobtype", "tests.sample.add")]
    anna.raise_request_exception = False
    failed: dict[str, object] = {
        address: code
        for address in addresses
        if (code := anna.get(address, follow=True).status_code) != 200
    }
    for command in COMMANDS:
        out = io.StringIO()
        try:
            call_command("jobqueue", *command.split(), stdout=out, stderr=out)
        except (CommandError, SystemExit):
            pass
        except Exception as error:
            failed[command] = repr(error)[:200]
    assert failed == {}
