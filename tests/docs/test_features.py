"""What the pages say is not here is not here, and what is here they do not deny.

Each feature has the words by which others know it, a witness in the code, and the words
of ours that a line about it has to name. A feature that is made gets a line in
``FEATURES`` and leaves ``MISSING``: its witness in the code says when.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.core.management import load_command_class

import django_jobqueue
from django_jobqueue import models, operations
from django_jobqueue.conf import Conf
from django_jobqueue.contrib.importing.celery_canvas import CANVAS
from django_jobqueue.contrib.importing.celery_options import ADVICE
from django_jobqueue.domain.policy import Policy
from django_jobqueue.text import foreign_words
from tests.docs.pages import pages

FOLDER = "docs/guides/coming-from/"
NOT_HERE = "docs/index.md"


@dataclass(frozen=True)
class Feature:
    """A thing that job queues have."""

    theirs: str  # pattern: how others call it
    ours: str  # pattern: what a line about it names
    is_here: Callable[[], bool]


def an_option(name: str) -> Callable[[], bool]:
    return lambda: hasattr(Policy, name)


def a_setting(name: str) -> Callable[[], bool]:
    return lambda: name in Conf.settings


def public(name: str) -> Callable[[], bool]:
    return lambda: hasattr(django_jobqueue, name)


def a_flag(flag: str) -> Callable[[], bool]:
    command = load_command_class("django_jobqueue", "runworkers")
    text = command.create_parser("manage.py", "runworkers").format_help()
    return lambda: flag in text


FEATURES = {
    "schedules": Feature(
        r"periodic|crontab|\bcron\b|rqcron|celery beat|\bBeat\b",
        r"(?<!#)schedule|cron\(|every\(|rule",
        public("cron"),
    ),
    "locks by key, strict order": Feature(
        r"\block\b|\blocks\b|lock_task|strict order",
        r"PerKey|per_key|procrastinate-locks|\[below\]",
        an_option("per_key"),
    ),
    "rates": Feature(
        r"rate_limit|(?<!Concurrent)RateLimiter|\brates\b",
        r"Rate\(|rate=",
        an_option("rate"),
    ),
    "limits by key": Feature(r"RateLimit\(key", r"PerKey", an_option("per_key")),
    "recycling": Feature(
        r"max[-_]tasks|max-memory-per-child|\brecycle\b",
        r"--max-jobs|MAX_JOBS",
        a_flag("--max-jobs"),
    ),
    "scaling": Feature(
        r"autoscale",
        r"scaling\.md|hosts scale",
        lambda: hasattr(operations, "scale_hosts"),
    ),
    "endpoints": Feature(
        r"sent to a URL|call a URL|push queue", r"endpoint", a_setting("ENDPOINTS")
    ),
    "chains": Feature(
        r"^chains?$|`chain\(|async_chain|\.then\(|`link`",
        r"follow|on_success",
        an_option("on_success"),
    ),
    "expiry": Feature(
        r"\bexpires=|max_age|\bttl\b", r"expire|RETENTION", public("job")
    ),
    "wait": Feature(
        r"\.get\(timeout|get_result\(block",
        r"wait",
        public("wait"),
    ),
}

# What is not here, by the words of the landing page, and what would be in the code.
MISSING: dict[str, Callable[[], bool]] = {
    "batches": lambda: hasattr(django_jobqueue, "Batch") or hasattr(models, "Batch"),
    "graphs": lambda: hasattr(django_jobqueue, "Workflow"),
    "steps": lambda: hasattr(django_jobqueue.Context, "step"),
    "event": lambda: hasattr(django_jobqueue, "wait_for_event"),
    "chunks": lambda: hasattr(Policy, "chunk"),
    "beyond JSON": lambda: hasattr(Policy, "encoder"),
    "encryption": lambda: "ENCRYPTION" in Conf.settings or hasattr(Policy, "encrypted"),
    "exclusion": a_flag("--exclude-queues"),
    "Windows": lambda: False,
    "other than PostgreSQL": lambda: False,
}


def rows(text: str) -> Iterator[tuple[str, str]]:
    """Each line of its tables: the first cells, and the last one."""
    for row in re.findall(r"^\| (?!---).* \|$", text, re.M):
        first, _bar, last = row.strip("| ").rpartition(" | ")
        yield first, last


def not_here() -> list[tuple[str, str]]:
    section = pages()[NOT_HERE].partition("## What is not here")[2]
    return list(rows(section))[1:]


def lines() -> Iterator[tuple[str, str, str]]:
    """Whatever says what stands for a thing of others: the place, theirs, and ours."""
    for page, text in pages().items():
        if page.startswith(FOLDER) or page in (NOT_HERE, "README.md"):
            yield from ((page, *row) for row in rows(text))
        if page == "README.md":  # for which others are recommended
            yield from ((page, last, "") for _first, last in rows(text))
    for words in (ADVICE, CANVAS, *_tables_of_words()):
        yield from (("advice", theirs, ours) for theirs, ours in words.items())


def _tables_of_words() -> Iterator[dict[str, str]]:
    for value in vars(foreign_words).values():
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            yield value


def test_no_page_denies_a_feature_that_is_here() -> None:
    denied = [
        (name, place, theirs, ours)
        for place, theirs, ours in lines()
        for name, feature in FEATURES.items()
        if re.search(feature.theirs, theirs) and not re.search(feature.ours, ours)
    ]
    assert denied == []


def test_features_are_here_and_found_in_the_pages() -> None:
    assert [name for name, one in FEATURES.items() if not one.is_here()] == []
    told = [theirs for _place, theirs, _ours in lines()]
    unasked = {"endpoints"}  # of which no guide speaks
    for name, feature in FEATURES.items():
        assert name in unasked or any(re.search(feature.theirs, one) for one in told)


def test_the_landing_page_says_what_is_not_here_and_nothing_else() -> None:
    said = [theirs for theirs, _ours in not_here()]
    assert [word for word, made in MISSING.items() if made()] == []
    found = {word: [one for one in said if word in one] for word in MISSING}
    assert [word for word, ones in found.items() if len(ones) != 1] == []
    assert sorted({one for ones in found.values() for one in ones}) == sorted(said)
