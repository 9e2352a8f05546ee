"""Text from jobs stays text, whatever it says."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    JobType,
    Queue,
    QueuedJob,
)
from tests.admin import scene as rows
from tests.admin.pages import MODELS, Page, get, list_of, page_of, select, verb_of

MARK = "jqmark"
HOSTILE = (
    f"<script>alert('{MARK}')</script>",
    f"<img src=x onerror=alert('{MARK}')>",
    f"\"'><svg/onload=alert('{MARK}')><x a=\"",
    f"</pre></textarea></title></style><b id={MARK}>",
    f"javascript:alert('{MARK}')",
    f"{{{{ 7|add:7 }}}}{{% now 'Y' %}}{MARK}",
)
HIDDEN = f"\u202e{MARK}\u200b\x1b[31m\ufeff"


def infect(text: str, name: str = "") -> dict[str, object]:
    """Rows with this text wherever text can be; returns a key for each model."""
    job_type = queue = (name or text)[:100]
    now = timezone.now()
    JobType.objects.create(
        name=job_type,
        queue=queue,
        handler=text,
        description=text,
        backoff=text,
        sensitive=[text],
        paused=True,
        paused_at=now,
        paused_by=text,
        paused_reason=text,
    )
    Queue.objects.create(
        name=queue, paused=True, paused_at=now, paused_by=text, paused_reason=text
    )
    worker = rows.worker(
        name or text,
        host=text,
        supervisor=text,
        release=text,
        queues=[text],
        job_types=[text],
        versions={text: text},
        desired="drain",
        end=text,
    )
    group = rows.uuid4()
    FailureGroup.objects.create(
        fingerprint=group,
        coarse=group,
        error_class=name or text,
        frame=name or text,
        template=text,
        assignee=name or text,
        notes=name or text,
        changed_by=text,
    )
    error = {"error_class": text, "error_message": text, "fingerprint": group}
    common = {"job_type": job_type, "queue": queue, "enqueued_by": text}
    data = {text: text, "list": [text], "deep": {text: {text: text}}}
    running = rows.queued(
        status="running", worker_id=worker, started_at=now, data=data, **common
    )
    waiting = rows.queued(attempts=1, data=data, **common)
    over = rows.archived(
        status="failed",
        worker=text,
        release=text,
        result=text,
        data=data,
        **error,
        **common,
    )
    for id in (running, waiting, over):
        Failure.objects.create(
            job_id=id,
            job_type=job_type,
            number=1,
            end="failed",
            reason=text,
            worker=text,
            release=text,
            traceback=text,
            log_tail=text,
            **error,
        )
    assert QueuedJob.objects.count() == 2
    assert ArchivedJob.objects.count() == 1
    return {
        "archivedjob": over,
        "failuregroup": group,
        "jobtype": job_type,
        "queue": queue,
        "queuedjob": waiting,
        "worker": worker,
    }


def shape_of(page: Page) -> list[tuple[str, list[str]]]:
    """Elements and the names of their attributes, without their order on the page."""
    return sorted((tag, sorted(attrs)) for tag, attrs in page.elements)


def check(page: Page) -> None:
    """No element and no attribute came from the text."""
    for tag, attributes in page.elements:
        assert MARK not in tag
        assert not [name for name in attributes if name.startswith("on")]
        assert not [name for name in attributes if MARK in name]
        if tag == "script":
            assert attributes.get("src") or attributes.get("type") == "application/json"
        for name in ("href", "src", "action", "formaction"):
            assert not str(attributes.get(name)).startswith("javascript")
    assert not page.all("b", id=MARK)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("model", MODELS)
def test_lists_and_pages_show_it_as_text(anna: Client, model: str, text: str) -> None:
    key = infect(text)[model]
    for address in (list_of(model), page_of(model, key)):
        page = get(anna, address)
        check(page)
        assert MARK in page.text


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    ("model", "verb"),
    [
        ("archivedjob", "replay"),
        ("jobtype", "pause"),
        ("jobtype", "resume"),
        ("queue", "resume"),
        ("queuedjob", "cancel"),
        ("queuedjob", "reschedule"),
        ("queuedjob", "run_now"),
        ("worker", "stop"),
    ],
)
def test_questions_show_it_as_text(
    anna: Client, model: str, verb: str, text: str
) -> None:
    key = infect(text)[model]
    check(select(anna, model, verb, key))
    check(get(anna, verb_of(model, verb), keys=str(key)))


@pytest.mark.parametrize("text", HOSTILE)
def test_filters_and_searches_show_it_as_text(anna: Client, text: str) -> None:
    infect(text)
    for parameter in ("job_type", "queue", "fingerprint", "q"):
        check(get(anna, list_of("archivedjob"), **{parameter: text}))
    for parameter in ("job_type", "queue", "state", "q"):
        check(get(anna, list_of("queuedjob"), **{parameter: text}))
    check(get(anna, list_of("archivedjob"), finished_at__range__gte_0=text))


@pytest.mark.parametrize("model", MODELS)
def test_characters_that_hide_or_turn_text_are_shown_as_escapes(
    anna: Client, model: str
) -> None:
    """In all but names and notes, which Django shows in titles and forms."""
    key = infect(HIDDEN, "plain")[model]
    for address in (list_of(model), page_of(model, key)):
        text = get(anna, address).text
        assert not [hidden for hidden in "\u202e\u200b\x1b\ufeff" if hidden in text]
    assert f"\\u202e{MARK}\\u200b\\u001b[31m\\ufeff" in text
