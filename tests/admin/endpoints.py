"""Every address of the job queue in the admin, as the registered pages say.

A page or a button that is added is found, and with it what ``test_endpoints`` asks of
each. Only what each of them does is listed, with the role that may do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import connection, transaction
from django.db.models import Model
from django.urls import reverse

from django_jobqueue.management.jobqueue.roles import ROLES
from django_jobqueue.models import Alert, AuditEntry, SavedView
from django_jobqueue.operations import bulk, job_searches, personal_data
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin.scene import LEAK, SECRET, Scene
from tests.store.rows import KEYED

Keys = Mapping[str, object]  # by the lower-case name of the model

# What is done there concerns nobody else: users save views of lists for themselves.
OWN = ("queuedjob/views/save/", "queuedjob/views/edit/", "queuedjob/views/delete/")

# The first role that may do it. What only shows is everybody's, and is not here.
FIRST = {
    "bulkoperation/<uuid:object_id>/start/": "Job operator",
    "bulkoperation/<uuid:object_id>/pause/": "Job operator",
    "bulkoperation/<uuid:object_id>/resume/": "Job operator",
    "bulkoperation/<uuid:object_id>/stop/": "Job operator",
    "bulkoperation/<uuid:object_id>/undo/": "Job operator",
    "bulkoperation/<uuid:object_id>/step/": "Job operator",
    "erasure/find/": "Job admin",
    "erasure/<uuid:object_id>/erase/": "Job admin",
    "erasure/<uuid:object_id>/delete-rows/": "Job admin",
    "erasure/<uuid:object_id>/resume/": "Job admin",
    "erasure/<uuid:object_id>/step/": "Job admin",
    "erasure/<uuid:object_id>/stop/": "Job admin",
    "failuregroup/<path:object_id>/replay-jobs/": "Job operator",
    "failuregroup/<path:object_id>/resolve-and-replay/": "Job operator",
    "failuregroup/<path:object_id>/cancel-jobs/": "Job operator",
    "failuregroup/<path:object_id>/prune-jobs/": "Job admin",
    "failuregroup/resolve/": "Job operator",
    "failuregroup/ignore/": "Job operator",
    "failuregroup/reopen/": "Job operator",
    "failuregroup/assign/": "Job operator",
    "failuregroup/note/": "Job operator",
    "archivedjob/<path:object_id>/replay_edited/": "Job engineer",
    "archivedjob/<path:object_id>/download/": "Job operator",
    "archivedjob/<path:object_id>/reveal/": "Job admin",
    "archivedjob/free_key/": "Job operator",
    "archivedjob/replay/": "Job operator",
    "archivedjob/prune/": "Job admin",
    "queuedjob/<path:object_id>/edit_data/": "Job engineer",
    "queuedjob/<path:object_id>/download/": "Job operator",
    "queuedjob/<path:object_id>/reveal/": "Job admin",
    "queuedjob/run_now/": "Job operator",
    "queuedjob/reschedule/": "Job operator",
    "queuedjob/cancel/": "Job operator",
    "queuedjob/free_key/": "Job operator",
    "queuedjob/release/": "Job operator",
    "queuedjob/allow_attempts/": "Job operator",
    "queuedjob/fail/": "Job operator",
    "jobsearch/start/": "Job operator",
    "jobsearch/<uuid:object_id>/stop/": "Job operator",
    "jobtype/<path:object_id>/new/": "Job engineer",
    "jobtype/<path:object_id>/change/": "Job engineer",  # overrides; others only look
    "jobtype/clear/": "Job engineer",
    "jobtype/pause/": "Job operator",
    "jobtype/resume/": "Job operator",
    "keylimit/override/": "Job engineer",
    "host/drain/": "Job operator",
    "host/resume/": "Job operator",
    "host/restart/": "Job operator",
    "host/scale/": "Job operator",
    "host/stop/": "Job operator",
    "lease/take-away/": "Job operator",
    "queue/pause-by-name/": "Job operator",
    "queue/pause/": "Job operator",
    "queue/resume/": "Job operator",
    "queuedjob/views/save/": "Job viewer",  # for themselves
    "queuedjob/views/edit/": "Job viewer",
    "queuedjob/views/delete/": "Job viewer",
    "schedule/run/": "Job operator",
    "schedule/pause/": "Job operator",
    "schedule/resume/": "Job operator",
    "schedule/<path:object_id>/edit/": "Job engineer",
    "schedule/reset/": "Job engineer",
    "schedule/remove/": "Job engineer",
    "schedule/new/": "Job engineer",
    "schedule/preview/": "Job engineer",  # a part of the forms
    "token/create/": "Job admin",
    "token/revoke/": "Job admin",
    "worker/drain/": "Job operator",
    "worker/resume/": "Job operator",
    "worker/stop/": "Job operator",
    "worker/restart/": "Job operator",
    "worker/where/": "Job operator",
    "worker/<path:object_id>/stack/": "Job operator",
}
# All rights of a role: each has those of the one before.
RIGHTS = dict(
    zip(ROLES, accumulate(ROLES.values(), lambda more, one: (*more, *one)), strict=True)
)

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

    @property
    def is_page(self) -> bool:
        """Whether it is the page of an object."""
        return self.route == "<path:object_id>/change/"

    @property
    def does(self) -> bool:
        """Whether it is there to do something, which only a POST can."""
        return str(self) in FIRST

    @property
    def is_nobodys(self) -> bool:
        """Whether it is a form of Django's that is for no one."""
        return self.route in ("add/", "<path:object_id>/delete/")

    def address(self, keys: Keys) -> str:
        """The address, about the row with this key."""
        if not self.model:
            return reverse("admin:app_list", args=["jobqueue"])
        key = quote(str(keys.get(self.model)))
        below = PARAMETER.sub(key, self.route)
        return reverse(f"admin:jobqueue_{self.model}_changelist") + below


def endpoints() -> Iterator[Endpoint]:
    """All of them."""
    yield Endpoint("", "")  # the overview
    for model in models_with_pages():
        for pattern in admin.site.get_model_admin(model).get_urls():
            yield Endpoint(str(model._meta.model_name), str(pattern.pattern))


def models_with_pages() -> list[type[Model]]:
    """All models of the job queue that have pages."""
    found = apps.get_app_config("jobqueue").get_models()
    return [model for model in found if admin.site.is_registered(model)]


ALL = list(endpoints())


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
def writes() -> Iterator[list[str]]:
    """The statements that write or lock a row."""
    written: list[str] = []

    def look(
        execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        if WRITES.search(sql):
            written.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        yield written


@contextmanager
def nothing_written() -> Iterator[list[str]]:
    """No row may change, and no statement may write or lock one; gives those that did,
    for who wants to know at once."""
    before = everything()
    with writes() as written:
        yield written
    assert written == []
    assert everything() == before


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens to the database is undone."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
