"""The pages that pictures are taken of."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.rooms import models
from testproject.screenshots import figures, operating, schedules
from testproject.screenshots import scene as rows
from testproject.screenshots.scene import Scene


def prepare() -> tuple[Scene, str]:
    """The scene, and the session of anna, who may do everything."""
    call_command("migrate", verbosity=0)
    anna = get_user_model().objects.create_superuser("anna", "anna@harbour.example")
    scene = rows.build(timezone.now())
    figures.build(scene)
    schedules.build(scene)
    operating.build(scene)
    client = Client()
    client.force_login(anna)
    return scene, client.cookies[settings.SESSION_COOKIE_NAME].value


def addresses(scene: Scene) -> dict[str, str]:
    """Where each page is."""
    keys = scene.keys
    return {
        "index": reverse("admin:index"),
        "overview": reverse("admin:app_list", args=["jobqueue"]),
        "queued-jobs": _list("queuedjob"),
        "archived-jobs": _list("archivedjob"),
        "search": _list("archivedjob", q="error:ConnectError finished:>-2h"),
        "failures": _list("failuregroup"),
        "failures-by-time": _list("failuregroup") + "matrix/?window=7d",
        "failure-group": _page("failuregroup", keys["group refused"]),
        "job-failed": _page("archivedjob", keys["refused"]),
        "job-waiting": _page("queuedjob", keys["ready"]),
        "replay": _verb("archivedjob", "replay", keys["refused"], keys["order"]),
        "job-types": _list("jobtype"),
        "job-type": _page("jobtype", keys["jobtype"]),
        "releases": _list("jobtype") + "releases/",
        "pause": _verb("jobtype", "pause", keys["jobtype"]),
        "queues": _list("queue"),
        "schedules": _list("schedule"),
        "schedule": _page("schedule", keys["schedule"]),
        "schedule-override": _page("schedule", keys["schedule"]).replace(
            "/change/", "/edit/"
        ),
        "schedule-new": _list("schedule") + f"new/?job_type={keys['jobtype']}",
        "workers": _list("worker"),
        "worker": _page("worker", keys["worker"]),
        "hosts": _list("host"),
        "limit": _page("keylimit", keys["limit"]),
        "alerts": _list("alert"),
        "operations": _list("bulkoperation"),
        "operation": _page("bulkoperation", keys["operation"]),
        "audit": _list("auditentry"),
        "draft": _page("bulkoperation", keys["draft"]),
    }


def other_addresses(scene: Scene) -> dict[str, str]:
    """Where the pages are that are looked at, and no pictures of them kept."""
    keys = scene.keys
    return {
        "host": _page("host", keys["host"]),
        "endpoint": _page("worker", keys["endpoint"]),
        "move": _page("worker", keys["move"]),
        "host-scale": _verb("host", "scale", keys["host"]),
        "limits": _list("keylimit"),
        "limit-override": _verb("keylimit", "override", keys["limit"]),
        "leases": _list("lease"),
        "lease": _page("lease", keys["lease"]),
        "searches": _list("jobsearch"),
        "job-search": _page("jobsearch", keys["search"]),
        "erasures": _list("erasure"),
        "erasure": _page("erasure", keys["erasure"]),
    }


def _list(model: str, **query: str) -> str:
    address = _address(model, "changelist")
    return f"{address}?{urlencode(query)}" if query else address


def _page(model: str, key: Any) -> str:
    return _address(model, "change", quote(str(key)))


def _verb(model: str, verb: str, *keys: Any) -> str:
    address = _address(model, verb)
    return f"{address}?{urlencode({'keys': chr(10).join(map(str, keys))})}"


def _address(model: str, page: str, *args: str) -> str:
    """Of a page of a model, whichever room has it."""
    rooms = {each._meta.model_name: each._meta.app_label for each in models()}
    return reverse(f"admin:{rooms[model]}_{model}_{page}", args=args)
