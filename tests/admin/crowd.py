"""Rows with all that every page must survive, at once: text that would be code, hidden
characters, secrets, and numbers as large as those of a busy year."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.contrib.staticfiles import finders
from django.db import connection
from django.utils import timezone
from django.utils.translation import get_language

from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
    Report,
    Worker,
)
from tests.admin import scene as rows
from tests.admin.hostile import HIDDEN, MARK, infect
from tests.admin.pages import Page
from tests.admin.scene import ADD, SECRET, Scene
from tests.stats.rows import ago, histogram, rollup

# It ends whatever it may stand in, is an element and attributes, and a format. It fits
# the name of a saved view, and the text where it is cut.
TEXT = f"\"'></title></textarea></script><{MARK}/on{MARK}>%s%(n)d{{0}}"
CREDENTIALS = (
    "postgresql://shop:s3cr3t@db/shop",
    "Authorization: Bearer abcdef0123456789",
    "4111 1111 1111 1111",
    "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl",
    "password=s3cr3t",
)
PIN = 48_151_623
SECRETS = (
    *("s3cr3t", "abcdef0123456789", "4111 1111 1111 1111", "c2lnbmF0dXJl"),
    *(SECRET, str(PIN)),
)
SHEET = "/static/django_jobqueue/admin.css"
# What is wrong, in which language. Numbers inside of words are ids, dates or names.
ALONE = r"(?<![\w.,:/…-])(?:{})(?![\w.,:/…-]*\w)"
WRONG = {
    "en": re.compile(ALONE.format(r"\d{5,}|\d{1,3}(?:\.\d{3})+|\d+,\d{1,2}")),
    "de": re.compile(ALONE.format(r"\d{5,}|\d{1,3}(?:,\d{3})+|\d+\.\d{1,2}")),
}
BACKLOG = """
INSERT INTO jobqueue_queuedjob (job_type, run_after)
SELECT %s, now() - interval '12345 days' FROM generate_series(1, 1234)
"""


@dataclass(frozen=True)
class Crowd:
    """A key for each model, of a row with code, and of one with hidden characters; and
    the plain rows beside them."""

    scene: Scene
    code: dict[str, Any]
    hidden: dict[str, Any]


def crowd(*, is_large: bool) -> Crowd:
    """The rows of a scene, and two of each model with all that. Many jobs and figures
    only if it is to be large."""
    scene = rows.build()
    if is_large:
        with connection.cursor() as cursor:
            cursor.execute(BACKLOG, [ADD])
    found = Crowd(scene, dict(infect(TEXT)), dict(infect(HIDDEN, "plain")))
    for keys in (found.code, found.hidden):
        keys.update(query="status=cancelled")
    _tell_secrets()
    if is_large:
        _enlarge()
    return found


def _tell_secrets() -> None:
    """Secrets in all that jobs and their handlers say."""
    text = " ".join([TEXT, *CREDENTIALS])
    data = {
        "password": SECRET,
        "people": [{"Address": {"street": SECRET, "door": PIN}}],
        "note": text,
        TEXT: {HIDDEN: [HIDDEN, TEXT]},
    }
    # What a handler returns may have it anywhere.
    result = {
        **data,
        "echo": SECRET,
        "door": PIN,
        "texts": [f"sent to {SECRET}.", [SECRET], str(PIN)],
        f"to {SECRET}": {SECRET: True},
    }
    JobType.objects.update(sensitive=["address"])
    QueuedJob.objects.update(data=data)
    error = f"{HIDDEN} {text}"
    ArchivedJob.objects.update(
        data=data, result=result, metadata=result, error_message=error
    )
    Failure.objects.update(error_message=error, traceback=error, log_tail=error)
    FailureGroup.objects.update(template=error)


def _enlarge() -> None:
    now = timezone.now()
    large = {"attempts": 12_345, "max_attempts": 23_456, "crashes": 34_567}
    QueuedJob.objects.update(**large, priority=-100)
    ArchivedJob.objects.update(**large, run_ms=20_250, wait_ms=1_234_567_890_123)
    Worker.objects.update(running=12_345, threads=23_456, rss=12_345_678_901)
    Report.objects.update(done=12_345.5, total=1_234_567, queries=23_456)
    JobType.objects.exclude(delivery="at_most_once").update(
        concurrency=12_345, max_attempts=23_456, timeout=timedelta(days=12_345)
    )
    for minute in range(1, 40, 13):
        rollup(
            now - timedelta(minutes=minute),
            succeeded=1_234_567,
            failed=1_234,
            retried=12_345,
            other=23_456,
            run_histogram=[12_345 * n for n in histogram(0.2, 1.25, 20.25)],
            wait_histogram=[23_456 * n for n in histogram(0.02, 12_345)],
        )
    BulkOperation.objects.update(
        state="running",
        total=48_211_000,
        seen=29_880_000,
        changed=29_455_000,
        skipped={"replayed": 312_000},
        per_minute=12_000,
        started_at=ago(hours=1),
        progress_at=now,
    )


def problems(page: Page) -> list[str]:
    language = get_language() or ""
    found = [*code(page), *told(page.html)]
    if f'lang="{language}"' not in page.html:
        found.append("another language")
    found += [
        f"not as in {language}: {number} in {text!r}"
        for text in page.shown
        for number in wrong(text, language[:2])
    ]
    return found


def wrong(text: str, language: str) -> list[str]:
    """The numbers in a text that are not written as the language has them."""
    return WRONG[language].findall(text)


def hidden(page: Page) -> list[str]:
    """Characters that hide or turn text, which pages show as escapes."""
    return [f"hidden {one!r}" for one in "\u202e\u200b\x1b\ufeff" if one in page.text]


def code(page: Page) -> list[str]:
    """Elements and attributes that were text."""
    found = []
    for tag, attributes in page.elements:
        names = [one for one in attributes if MARK in one or one.startswith("on")]
        if MARK in tag or names or "style" in attributes:
            found.append(f"code: {tag} {attributes}")
        if tag == "script" and not (
            attributes.get("src") or attributes.get("type") == "application/json"
        ):
            found.append(f"a script: {attributes}")
        for name in ("href", "src", "action", "formaction"):
            if str(attributes.get(name)).startswith("javascript"):
                found.append(f"a script in an address: {attributes}")
    if page.all("b", id=MARK):
        found.append("code: b")
    return found


def told(text: str) -> list[str]:
    return [f"tells {secret}" for secret in SECRETS if secret in text]


def unstyled(page: Page) -> list[str]:
    """What a page of ours lacks to look like one."""
    sheets = [str(link.get("href")) for link in page.all("link", rel="stylesheet")]
    own = [sheet for sheet in sheets if "django_jobqueue" in sheet]
    found = [f"no file: {sheet}" for sheet in own if not _is_there(sheet)]
    classes = " ".join(str(attrs.get("class")) for _tag, attrs in page.elements)
    if SHEET not in sheets or "jq" not in classes.split():
        found.append("no styles")
    return found


@cache
def _is_there(sheet: str) -> bool:
    return finders.find(sheet.removeprefix("/static/")) is not None
