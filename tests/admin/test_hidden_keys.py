"""An argument of a job is shown to nobody who may not see it, wherever it stands: in
its data, its key of a limit, the options of its followers; on pages and in files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.admin.base import JobQueueAdmin
from django_jobqueue.models import JobType, KeyOverride, QueuedJob
from tests.admin.conftest import LogIn
from tests.admin.pages import list_of, page_of
from tests.admin.scene import archived
from tests.store.rows import ADD, KEYED, make

pytestmark = pytest.mark.django_db

SECRET = "alice-example"
KEY = f"{KEYED} {SECRET}"
DATA_RIGHTS = ("view_job_data", "reveal_job_data", "erase_personal_data")


@pytest.fixture
def jobs() -> None:
    """Jobs with it in each column that has arguments, and what operators did."""
    values = {
        "data": {"key": SECRET, "journal": "x"},
        "metadata": {"key": SECRET},
        "followers": {
            "on_success": [{"job_type": ADD, "metadata": {"key": SECRET}}],
        },
        "limit_key": KEY,
    }
    make(KEYED, **values)
    archived(KEYED, "failed", result={"key": SECRET}, **values)
    operations.override_limit(KEYED, 0, key=SECRET, by="anna")
    assert KeyOverride.objects.get().limit_key == KEY


def engineer(log_in: LogIn, *without: str) -> Client:
    """Who may do everything but this."""
    own = Permission.objects.filter(content_type__app_label__startswith="jobqueue")
    rights = own.exclude(codename__in=without)
    return log_in(*rights.values_list("codename", flat=True), name=f"no {without}")


def addresses() -> Iterator[str]:
    for model, page in admin.site._registry.items():  # private: the pages there are
        if not isinstance(page, JobQueueAdmin):
            continue
        name = str(model._meta.model_name)
        yield list_of(name)
        if name in ("queuedjob", "archivedjob"):
            yield from (f"{list_of(name)}export.{form}/" for form in ("csv", "jsonl"))
        if name in ("overview", "searchesjob"):
            continue
        for key in model._default_manager.values_list("pk", flat=True)[:3]:
            if name != "jobtype":
                yield page_of(name, key)
                yield page_of(name, key).replace("/change/", "/history/")
    yield page_of("jobtype", KEYED)


def told(client: Client) -> set[str]:
    """The addresses that tell it."""
    found = set()
    for address in addresses():
        response = client.get(address)
        assert response.status_code in (200, 302, 404), address
        is_file = response.streaming
        parts = response.streaming_content if is_file else [response.content]
        if SECRET.encode() in b"".join(parts):  # type: ignore[arg-type]
            found.add(address)
    return found


def test_whoever_sees_no_data_of_jobs_sees_no_key(jobs: None, log_in: LogIn) -> None:
    assert told(engineer(log_in, *DATA_RIGHTS)) == set()


def test_a_key_of_a_sensitive_argument_is_shown_to_nobody(
    jobs: None, log_in: LogIn
) -> None:
    JobType.objects.filter(pk=KEYED).update(sensitive=["key"])
    assert told(engineer(log_in)) == set()


def test_others_see_it_where_they_look_for_it(jobs: None, log_in: LogIn) -> None:
    id = QueuedJob.objects.get().pk
    assert told(engineer(log_in)) >= {
        page_of("queuedjob", id),
        page_of("keylimit", KEYED),
        f"{list_of('queuedjob')}export.csv/",
        f"{list_of('archivedjob')}export.jsonl/",
        list_of("auditentry"),
    }
