"""Two operators have the same form open: whoever saves second is told, and nothing of
the first one's is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from django_jobqueue import operations
from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.actions.row_marks import MARKS, changed_meanwhile
from django_jobqueue.contrib.console import saved_views
from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.contrib.leases import take_away_leases
from django_jobqueue.contrib.schedules import operations as schedules
from django_jobqueue.models import (
    AuditEntry,
    FailureGroup,
    JobType,
    KeyOverride,
    QueuedJob,
)
from django_jobqueue.store.connection import OwnConnection
from tests.admin.pages import model_of, page_of, table_of, verb_of
from tests.admin.scene import ADD, FAIL, LEAK, Scene
from tests.admin.sent_forms import Form, fields_of
from tests.admin.units import answer, told
from tests.store.meanwhile import WAITING, open_transaction, submit
from tests.store.rows import KEYED
from tests.support.waiting import eventually

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("requests_commit")]

NEXT_YEAR = "2099-01-01T00:00"
WEEK_AFTER = "2099-01-08T00:00"


@dataclass(frozen=True)
class Case:
    """A form, what each of two operators types, and what a program does instead of the
    first one: by the command, or by HTTP."""

    model: str
    action: str
    key: Callable[[Scene], Any]
    first: dict[str, Any]
    second: dict[str, Any]
    program: Callable[[Any], Any]
    query: str = ""
    again: bool = True  # whether the second may still do it, knowing

    def address(self, key: Any) -> str:
        if not self.action:
            return page_of(self.model, key)
        if self.action == "edit":
            name = f"admin:{table_of(self.model)}_edit"
            return reverse(name, args=[quote(key)])
        if self.action == "views":
            return reverse("admin:jobqueue_console_savedview_changelist")
        return f"{verb_of(self.model, self.action)}?keys={key}{self.query}"


def view(scene: Scene) -> int:
    saved_views.save(list="queuedjob", name="old", query="q=x", by="anna")
    SavedView.objects.update(is_shared=True)
    return SavedView.objects.get().pk


def named(name: str) -> Callable[[Scene], str]:
    return lambda scene: name


def overridden(scene: Scene) -> str:
    operations.override(FAIL, max_attempts=5, priority=2, by="anna")
    return FAIL


def reopened(scene: Scene) -> Any:
    operations.resolve([scene.group], by="anna")
    return scene.group


def job(scene: Scene) -> Any:
    return scene.queued["later"]


def group(scene: Scene) -> Any:
    return scene.group


def pause_of(**chosen: Any) -> Callable[[Any], Any]:
    return lambda key: operations.pause(key, reason="program", **chosen)


CASES = {
    "overrides": Case(
        *("jobtype", "", named(FAIL)),
        first={"concurrency_override": "3"},
        second={"timeout_override": "90"},
        program=lambda key: operations.override(key, concurrency=3),
    ),
    "clear overrides": Case(
        *("jobtype", "clear", overridden),
        first={"override": "max_attempts"},
        second={"override": "priority"},
        program=lambda key: operations.override(key, concurrency=3),
    ),
    "pause a type": Case(
        *("jobtype", "pause", named(ADD)),
        first={"reason": "theirs"},
        second={"reason": "ours"},
        program=pause_of(),
    ),
    "resume a type": Case(
        *("jobtype", "resume", named(LEAK)),
        first={},
        second={},
        program=pause_of(),
    ),
    "pause a queue": Case(
        *("queue", "pause", named("images")),
        first={"reason": "theirs"},
        second={"reason": "ours"},
        program=pause_of(queues=True),
    ),
    "pause a queue without a row": Case(
        *("queue", "pause", named("default")),
        first={"reason": "theirs"},
        second={"reason": "ours"},
        program=pause_of(queues=True),
    ),
    "resume a queue": Case(
        *("queue", "resume", named("mail")),
        first={},
        second={},
        program=pause_of(queues=True),
    ),
    "a limit": Case(
        *("keylimit", "override", named(KEYED)),
        first={"concurrency": "7"},
        second={"rate": "5/s"},
        program=lambda key: operations.override_limit(key, 7),
    ),
    "a limit of one key": Case(
        *("keylimit", "override", named(KEYED)),
        first={"concurrency": "7"},
        second={"rate": "5/s"},
        program=lambda key: operations.override_limit(key, 7, key="acme"),
        query="&key=acme",
    ),
    "override a schedule": Case(
        *("schedule", "edit", named("nightly-report")),
        first={"rule": "@hourly"},
        second={"time_zone": "Europe/Berlin"},
        program=lambda key: schedules.override(key, rule="@hourly"),
    ),
    "edit a schedule": Case(
        *("schedule", "edit", named("clean-up")),
        first={"rule": "@hourly"},
        second={"overlap": "skip"},
        program=lambda key: schedules.edit(key, rule="@hourly"),
    ),
    "pause a schedule": Case(
        *("schedule", "pause", named("clean-up")),
        first={"reason": "theirs"},
        second={"reason": "ours"},
        program=lambda key: schedules.pause(key, reason="program"),
    ),
    "resume a schedule": Case(
        *("schedule", "resume", named("newsletter")),
        first={},
        second={},
        program=lambda key: (schedules.resume(key), schedules.pause(key, reason="x")),
        again=False,
    ),
    "reset a schedule": Case(
        *("schedule", "reset", named("prices")),
        first={},
        second={},
        program=lambda key: schedules.override(key, rule="@hourly"),
        again=False,
    ),
    "delete a schedule": Case(
        *("schedule", "remove", named("clean-up")),
        first={},
        second={},
        program=lambda key: schedules.edit(key, rule="@hourly"),
    ),
    "scale a host": Case(
        *("host", "scale", lambda scene: scene.hosts["asked"]),
        first={"processes": "4"},
        second={"threads": "9"},
        program=lambda key: operations.scale_hosts([key], processes=4),
    ),
    "run now": Case(
        *("queuedjob", "run_now", job),
        first={},
        second={},
        program=lambda key: operations.run_now([key]),
    ),
    "reschedule": Case(
        *("queuedjob", "reschedule", job),
        first={"run_after": NEXT_YEAR},
        second={"run_after": WEEK_AFTER},
        program=lambda key: operations.reschedule([key], priority=9),
    ),
    "attempts": Case(
        *("queuedjob", "allow_attempts", job),
        first={"max_attempts": "8"},
        second={"max_attempts": "9"},
        program=lambda key: operations.allow_attempts([key], 8),
    ),
    "resolve": Case(
        *("failuregroup", "resolve", group),
        first={"in_release": "r8"},
        second={"in_release": "r9"},
        program=lambda key: operations.ignore([key]),
    ),
    "ignore": Case(
        *("failuregroup", "ignore", group),
        first={"until": NEXT_YEAR},
        second={"until": WEEK_AFTER},
        program=lambda key: operations.resolve([key]),
    ),
    "reopen": Case(
        *("failuregroup", "reopen", reopened),
        first={},
        second={},
        program=lambda key: operations.ignore([key]),
        again=False,
    ),
    "assign": Case(
        *("failuregroup", "assign", group),
        first={"assignee": "carl"},
        second={"assignee": "dora"},
        program=lambda key: operations.assign([key], "carl"),
    ),
    "take a lease away": Case(
        *("lease", "take-away", lambda scene: "import"),
        first={},
        second={},
        program=lambda key: take_away_leases([key]),
        again=False,
    ),
    "a saved view": Case(
        *("savedview", "views", view),
        first={"name": "first"},
        second={"name": "second"},
        program=lambda key: SavedView.objects.filter(pk=key).update(name="first"),
    ),
}

# Actions that ask for something and replace nothing of a row.
NOTHING_REPLACED = {
    *(("failuregroup", "note"), ("failuregroup", "resolve_and_replay")),
    *(("queuedjob", name) for name in ("cancel", "fail", "edit_data")),
    *(("archivedjob", name) for name in ("replay", "replay_edited")),
    *(("erasure", "find"), ("token", "create"), ("queue", "pause-by-name")),
}


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def operator(name: str) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser(name, "", "x"))
    return client


def state(case: Case, key: Any) -> tuple[Any, ...]:
    """All that the forms write."""
    rows = model_of(case.model)._default_manager.filter(pk=key)
    return rows.values().first(), list(KeyOverride.objects.values())


def log_of(name: str) -> list[Any]:
    """What the audit and the histories say of somebody."""
    entries = LogEntry.objects.filter(user__username=name)
    return [*AuditEntry.objects.filter(by=name), *entries]


def form_of(client: Client, address: str, *, is_rendered: bool = True) -> Form:
    """The form of a page; pages cost much, and most of them are alike."""
    response = answer(client, address)
    if is_rendered or "form" not in response.context_data:
        return Form(response.render().content.decode(), MARKS)
    form = Form(f'<input name="{MARKS}">', MARKS)
    form.fields = fields_of(response.context_data)
    return form


def send(form: Form, client: Client, case: Case, key: Any, typed: Any) -> Any:
    return form.send(client, case.address(key), typed, confirmed="1")


def problem_of(case: Case, key: Any, first: Client | None, second: Client) -> str:
    """What goes wrong if the second saves after the first, or after a program."""
    address = case.address(key)
    opened = partial(form_of, address=address, is_rendered=False)
    forms = {one: opened(one) for one in (first, second) if one}
    before = state(case, key)
    if first:
        send(forms[first], first, case, key, case.first)
    else:
        case.program(key)
    saved = state(case, key)
    if saved == before or (first and not log_of("first")):
        return "the first saved nothing"
    text = told(send(forms[second], second, case, key, case.second))
    if text != changed_meanwhile() and key_is_there(case, key):
        return "the second was not told"
    if state(case, key) != saved:
        return "what the first saved is lost"
    if log_of("second"):
        return "the audit blames the second"
    if first is None or not case.again or not key_is_there(case, key):
        return ""
    send(opened(second), second, case, key, case.second)  # knowing it
    return "" if log_of("second") else "the second cannot save at all"


def key_is_there(case: Case, key: Any) -> bool:
    return state(case, key)[0] is not None or case.model == "queue"


@pytest.mark.parametrize("by_program", [False, True], ids=["operator", "program"])
def test_whoever_saves_second_is_told_and_replaces_nothing(
    scene: Scene, *, by_program: bool
) -> None:
    first, second = operator("first"), operator("second")
    problems = {}
    for name, case in CASES.items():
        with undone():
            key = case.key(scene)
            problem = problem_of(case, key, None if by_program else first, second)
            if problem:
                problems[name] = problem
    assert problems == {}


def test_the_pages_have_the_fields_of_their_forms(scene: Scene) -> None:
    client = operator("first")
    for name in ("a limit of one key", "edit a schedule", "reschedule"):
        case = CASES[name]
        address = case.address(case.key(scene))
        page, form = (
            form_of(client, address),
            form_of(client, address, is_rendered=False),
        )
        assert page.fields[MARKS]
        assert form.fields.items() <= page.fields.items()
        assert page.fields.keys() - form.fields.keys() <= {"csrfmiddlewaretoken"}


def test_a_note_is_added_to_another_s(scene: Scene) -> None:
    first, second = operator("first"), operator("second")
    address = f"{verb_of('failuregroup', 'note')}?keys={scene.group}"
    forms = [Form(one.get(address).content.decode(), "text") for one in (first, second)]
    forms[0].send(first, address, {"text": "seen on web-1"}, confirmed="1")
    forms[1].send(second, address, {"text": "and on web-2"}, confirmed="1")
    notes = FailureGroup.objects.get().notes
    assert "seen on web-1" in notes
    assert "and on web-2" in notes


def test_a_key_that_the_page_did_not_show_is_shown_before_it_is_replaced() -> None:
    client = operator("first")
    operations.override_key_rate(KEYED, "5/s", key="acme")
    typed = {"only_key": "on", "key": "acme", "concurrency": "1"}
    case = CASES["a limit"]
    form = form_of(client, case.address(KEYED))
    asked = send(form, client, case, KEYED, typed).render().content.decode()
    assert "It has overrides that this would replace" in asked
    assert "5/1s burst 1" in asked
    assert KeyOverride.objects.get().concurrency is None
    send(Form(asked, MARKS), client, case, KEYED, typed)
    assert (KeyOverride.objects.get().concurrency, KeyOverride.objects.get().rate) == (
        1,
        None,
    )
    send(form, client, case, KEYED, typed | {"key": "zen"})  # which has none
    assert KeyOverride.objects.count() == 2


def test_a_form_with_an_error_still_knows_what_it_was_made_of() -> None:
    client = operator("first")
    for case, wrong, right in (
        (CASES["overrides"], {"priority_override": "999"}, {"priority_override": "9"}),
        (CASES["a limit"], {"rate": "?"}, {"rate": "5/s"}),
    ):
        key = case.key(Scene())
        asked = send(form_of(client, case.address(key)), client, case, key, wrong)
        case.program(key)
        saved = state(case, key)
        form = Form(asked.render().content.decode(), MARKS)
        assert told(send(form, client, case, key, right)) == changed_meanwhile()
        assert state(case, key) == saved


def test_whoever_saves_at_the_same_moment_waits_and_is_told(own: OwnConnection) -> None:
    client, case = operator("first"), CASES["overrides"]
    form = form_of(client, case.address(FAIL))
    with ThreadPoolExecutor(1) as pool:
        with open_transaction(own) as transaction:
            # Not committed when the form is sent.
            transaction.run(
                "UPDATE jobqueue_jobtype SET concurrency_override = 3 WHERE name = %s",
                [FAIL],
            )
            saved = submit(pool, lambda: send(form, client, case, FAIL, case.second))
            eventually(lambda: own_waiting() == 1)
        text = told(saved.result(60))
    assert text == changed_meanwhile()
    row = JobType.objects.get(pk=FAIL)
    assert (row.concurrency_override, row.timeout_override) == (3, None)


def own_waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])


def test_of_several_rows_those_that_changed_are_left_alone(scene: Scene) -> None:
    client = operator("first")
    keys = [scene.queued[name] for name in ("ready", "later", "expiring")]
    address = f"{verb_of('queuedjob', 'reschedule')}?keys=" + "%0A".join(map(str, keys))
    form = form_of(client, address)
    operations.reschedule(keys[:1], priority=7)
    text = told(form.send(client, address, {"priority": "-3"}, confirmed="1"))
    assert text == "2 jobs were rescheduled. 1 was skipped: it changed meanwhile."
    jobs = QueuedJob.objects.in_bulk(keys)
    assert [jobs[key].priority for key in keys] == [7, -3, -3]


def test_every_action_that_replaces_something_is_tried_here() -> None:
    tried = {(case.model, case.action) for case in CASES.values()}
    missing = set()
    for model, page in admin.site._registry.items():  # private: the pages there are
        if not isinstance(page, ActionAdmin):
            continue
        for action in page.page_actions:
            name = (model._meta.model_name, action.name)
            replaces = action.replaces or type(action).replaced is not Action.replaced
            asks = (
                action.form_class.base_fields if hasattr(action, "form_class") else ()
            )
            if (replaces or asks) and name not in tried | NOTHING_REPLACED:
                missing.add(name)
    assert missing == set()
