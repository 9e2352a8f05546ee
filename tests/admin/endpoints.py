"""Every address of the job queue in the admin, as the registered pages say.

A page or a button that is added is found, and with it what ``test_endpoints`` asks of
each. Only what each of them does is listed, with the role that may do it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import connection
from django.db.models import Model
from django.urls import reverse

from django_jobqueue import rooms
from django_jobqueue.contrib.alerts.models import Alert
from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.management.jobqueue.roles import ROLES, rights_of
from django_jobqueue.models import AuditEntry
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin.pages import list_of
from tests.admin.scene import LEAK, SECRET, Scene
from tests.store.rows import KEYED

Keys = Mapping[str, object]  # by the lower-case name of the model

# What is done there concerns nobody else: users save views of lists for themselves.
OWN = ("savedview/save", "savedview/edit", "savedview/delete")

# The first role that may do it: what only shows is everybody's, and is not here.
_FIRST = {
    "Job viewer": """
        savedview: save edit delete
    """,
    "Job operator": """
        bulkoperation: <id>/start <id>/pause <id>/resume <id>/stop <id>/undo <id>/step
        failuregroup: <id>/replay-jobs <id>/resolve-and-replay <id>/cancel-jobs resolve
        failuregroup: ignore reopen assign note
        archivedjob: <id>/download free_key replay
        queuedjob: <id>/download run_now reschedule cancel free_key release
        queuedjob: allow_attempts fail
        jobsearch: start <id>/resume <id>/step <id>/stop
        jobtype: pause resume
        host: drain resume restart scale stop
        lease: take-away
        queue: pause-by-name pause resume
        schedule: run pause resume
        worker: drain resume stop restart where <id>/stack
    """,
    "Job engineer": """
        archivedjob: <id>/replay_edited
        queuedjob: <id>/edit_data
        jobtype: <id>/new <id>/change clear
        keylimit: override
        schedule: <id>/edit reset remove new preview
    """,
    "Job admin": """
        erasure: find <id>/erase <id>/delete-rows <id>/resume <id>/step <id>/stop
        failuregroup: <id>/prune-jobs
        archivedjob: <id>/reveal prune
        queuedjob: <id>/reveal
        token: create revoke
    """,
}
FIRST = {
    f"{line.partition(':')[0].strip()}/{verb}": role
    for role, lines in _FIRST.items()
    for line in lines.split("\n")
    for verb in line.partition(":")[2].split()
}
# All rights of a role: each has those of the one before.
RIGHTS = {
    role: sorted({right for one in ROLES[: n + 1] for right in rights_of(one)})
    for n, role in enumerate(ROLES)
}

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
    def name(self) -> str:
        """As ``FIRST`` has it."""
        return PARAMETER.sub("<id>", str(self)).rstrip("/")

    @property
    def is_list(self) -> bool:
        """Whether it is a list, or the overview: these take filters, and no form."""
        return not self.route

    @property
    def is_page(self) -> bool:
        return self.route == "<path:object_id>/change/"

    @property
    def does(self) -> bool:
        """Whether it is there to do something, which only a POST can."""
        return self.name in FIRST

    @property
    def is_nobodys(self) -> bool:
        """Whether it is a form of Django's that is for no one."""
        return self.route in ("add/", "<path:object_id>/delete/")

    def address(self, keys: Keys) -> str:
        if not self.model:
            return reverse("admin:app_list", args=["jobqueue"])
        key = quote(str(keys.get(self.model)))
        below = PARAMETER.sub(key, self.route)
        return list_of(self.model) + below


def endpoints() -> Iterator[Endpoint]:
    yield Endpoint("", "")  # the overview
    for model in models_with_pages():
        for pattern in admin.site.get_model_admin(model).get_urls():
            yield Endpoint(str(model._meta.model_name), str(pattern.pattern))


def models_with_pages() -> list[type[Model]]:
    found = rooms.models()
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
    return Alert.objects.create(condition="backlog", subject="mail", text="late").pk


def act() -> object:
    return AuditEntry.objects.create(by="anna", verb="pause", about=[LEAK]).pk


def saved_view() -> object:
    failed = {"list": "archivedjob", "name": "mine", "query": "status=failed"}
    return SavedView.objects.create(owner="bert", **failed).pk


def operation() -> object:
    selection = Selection(Table.ARCHIVED, (Term("status", "failed"),))
    return bulk.draft("replay", selection).id


def job_search() -> object:
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


def everything() -> dict[str, str | None]:
    """A sum of each table of the job queue, and of the admin's history."""
    models = [*rooms.models(), LogEntry]
    return sums([one._meta.db_table for one in models], {})


def sums(tables: Iterable[str], only: Mapping[str, str]) -> dict[str, str | None]:
    """A sum of the rows of each table, or of those for which this holds."""
    each = [
        f"SELECT '{table}', md5(string_agg(t::text, '' ORDER BY t::text))"
        f" FROM {table} t WHERE {only.get(table, 'true')}"
        for table in sorted(tables)
    ]
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(each))
        return dict(cursor.fetchall())


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
