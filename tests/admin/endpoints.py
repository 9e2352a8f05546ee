"""Every address of the job queue in the admin, as the registered pages say.

Nothing is listed here: a page or a button that is added is found, and with it what
``test_endpoints`` asks of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from django_jobqueue.models import Alert, AuditEntry, SavedView
from django_jobqueue.operations import bulk, job_searches, personal_data
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin.scene import LEAK, SECRET, Scene
from tests.store.rows import KEYED

Keys = Mapping[str, object]  # by the lower-case name of the model

# What is done there concerns nobody else: users save views of lists for themselves.
OWN = ("queuedjob/views/save/", "queuedjob/views/edit/", "queuedjob/views/delete/")

PARAMETER = re.compile(r"<(?:(?P<converter>\w+):)?(?P<name>\w+)>")
WRITES = re.compile(
    r"\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE|FOR\s+(NO\s+KEY\s+)?UPDATE"
    r"|FOR\s+(KEY\s+)?SHARE|pg_notify|NOTIFY)\b"
)


@dataclass(frozen=True)
class Endpoint:
    """An address: of which model, and its route below the model's list."""

    model: str
    route: str

    def __str__(self) -> str:
        return f"{self.model}/{self.route}"

    @property
    def is_list(self) -> bool:
        """Whether it is a list, or the overview: these take filters, and no form."""
        return not self.route

    def address(self, keys: Keys) -> str:
        """The address, about the row with this key."""
        if not self.model:
            return reverse("admin:app_list", args=["jobqueue"])
        key = quote(str(keys[self.model]))
        below = PARAMETER.sub(key, self.route)
        return reverse(f"admin:jobqueue_{self.model}_changelist") + below


def endpoints() -> Iterator[Endpoint]:
    """All of them."""
    yield Endpoint("", "")  # the overview
    for model, model_admin in admin.site._registry.items():
        if model._meta.app_label != "jobqueue":
            continue
        for pattern in model_admin.get_urls():
            yield Endpoint(str(model._meta.model_name), str(pattern.pattern))


ALL = list(endpoints())
# To be tried together where nothing changes: to make the rows takes longer than a page.
OF_MODEL = {
    model or "overview page": [one for one in ALL if one.model == model]
    for model in dict.fromkeys(one.model for one in ALL)
}


def actions() -> list[tuple[str, str]]:
    """Every action of every list: its model and its name."""
    return [
        (str(model._meta.model_name), str(action.__name__))
        for model, model_admin in admin.site._registry.items()
        if model._meta.app_label == "jobqueue"
        for action in model_admin.actions or ()
        if callable(action)
    ]


def keys_of(scene: Scene) -> Keys:
    """Of each model a row that whatever can be done with such rows would change."""
    return {
        "alert": alert(),
        "archivedjob": scene.archived["failed"],
        "auditentry": act(),
        "bulkoperation": operation(),
        "erasure": personal_data.find(SECRET).id,
        "failuregroup": scene.group,
        "host": scene.hosts["asked"],
        "jobsearch": job_search(),
        "jobtype": LEAK,
        "overview": "mail",
        "query": "status=cancelled",
        "keylimit": KEYED,
        "lease": scene.leases["held"],
        "queue": "mail",
        "queuedjob": scene.queued["later"],
        "savedview": saved_view(),
        "schedule": scene.schedules["overridden"],
        "token": scene.tokens["billing"],
        "worker": scene.workers["running"],
    }


def alert() -> object:
    """A condition that holds."""
    return Alert.objects.create(condition="backlog", subject="mail", text="late").pk


def act() -> object:
    """What somebody did."""
    return AuditEntry.objects.create(by="anna", verb="pause", about=[LEAK]).pk


def saved_view() -> object:
    """A view of bert's own."""
    failed = {"list": "archivedjob", "name": "mine", "query": "status=failed"}
    return SavedView.objects.create(owner="bert", **failed).pk


def operation() -> object:
    """The draft of a bulk operation."""
    selection = Selection(Table.ARCHIVED, (Term("status", "failed"),))
    return bulk.draft("replay", selection).id


def job_search() -> object:
    """A search of all failed jobs."""
    failed = Selection(Table.ARCHIVED, (Term("status", "failed"),))
    return job_searches.start("status:failed", {Table.ARCHIVED: failed})


def said(endpoint: Endpoint, keys: Keys) -> dict[str, Any]:
    """What forms and links of all pages could say, all at once."""
    key = str(keys[endpoint.model]) if endpoint.model else ""
    return {
        "_save": "Save",
        "_selected_action": key,
        "action": endpoint.route.strip("/").replace("-", "_"),
        "assignee": "mallory",
        "concurrency": "3",
        "confirmed": "1",
        "data": '{"a": 7}',
        "expires": "same",
        "index": "0",
        "key": key,
        "keys": key,
        "list": "archivedjob",
        "name": "images",
        "notes": "mallory was here",
        "priority": "3",
        "processes": "3",
        "priority_override": "9",
        "q": "error:NoSuchError",
        "queue": "mail",
        "reason": "because",
        "rule": "every 7 minutes",
        "skip_replayed": "none",
        "state": "resolved",
        "view": str(keys["savedview"]),
    }


def everything() -> dict[str, list[dict[str, Any]]]:
    """All rows of the job queue, and of the admin's history."""
    tables = [*apps.get_app_config("jobqueue").get_models(), LogEntry]
    return {
        table._meta.label: list(table._default_manager.order_by("pk").values())
        for table in tables
    }


@contextmanager
def nothing_written() -> Iterator[None]:
    """No row may change, and no statement may write or lock one."""
    before = everything()
    written: list[str] = []

    def look(
        execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if WRITES.search(sql):
            written.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield
    assert written == []
    assert everything() == before


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens to the database is undone."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def answers(client: Client, endpoint: Endpoint, keys: Keys) -> list[Any]:
    """What a GET and a POST that say everything are answered with."""
    address, form = endpoint.address(keys), said(endpoint, keys)
    query = {} if endpoint.is_list else form
    return [client.get(address, query), client.post(address, form)]
