"""What a caller may not see changes no answer: every operation is asked twice, in two
worlds that differ only by that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import Q

from django_jobqueue import enqueue
from django_jobqueue.contrib.http.cursors import SALT
from django_jobqueue.contrib.http.job_objects import forget_facts
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    Failure,
    JobType,
    Queue,
    QueuedJob,
    Worker,
)
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import FIELDS, SEVERAL, Selection, Table, Term
from tests.admin.scene import insert, insert_all, worker_row
from tests.contrib.http.conftest import ALL, Program
from tests.contrib.http.test_callers import USERS
from tests.contrib.http.test_matrix import (
    BODIES,
    OPERATIONS,
    PERMISSIONS,
    REMOTE,
    allow,
)
from tests.support.undone import undone

KEEP, SECRET = "tests.sample.keep", "shop.secret"
OURS, THEIRS = "tenant-a", "tenant-b"
MOMENT: Final = datetime(2026, 11, 1, 12, tzinfo=UTC)
FAR: Final = datetime(2126, 11, 1, 12, tzinfo=UTC)
UNKNOWN: Final = UUID(int=99)
PAGE: Final = 2  # fewer than there are of anything
KEY: Final = "order-7"  # a unique key

pytestmark = pytest.mark.django_db


class Ids(NamedTuple):
    """The ids of somebody's jobs."""

    queued: UUID
    running: UUID
    archived: UUID
    later: UUID
    earlier: UUID


OWN: Final = Ids(*(UUID(int=n) for n in range(10, 15)))
# Before and after one's own, in the order of lists.
HIDDEN: Final = [
    Ids(*(UUID(int=n) for n in range(first, first + 5))) for first in (1, 20, 30, 40)
]
NAMED: Final = {*OWN, UNKNOWN, *(id for ids in HIDDEN for id in ids)}
# That requests name: of each state, and of each kind of others' jobs.
OWN_NAMED: Final = (OWN.queued, OWN.archived, UNKNOWN)
HIDDEN_NAMED: Final = (*HIDDEN[0], HIDDEN[1].queued, HIDDEN[2].archived)


def add_jobs(
    ids: Ids, job_type: str, queue: str, *, holder: str = "", x: int = 1, pin: str = ""
) -> None:
    """Jobs of somebody: one of each state, with these contents."""
    same: dict[str, Any] = {
        "job_type": job_type,
        "queue": queue,
        "data": {"a": {"x": x, "password": pin}},
        "metadata": {"note": x},
        "created_at": MOMENT,
        "run_after": MOMENT,
        "tags": ["old"],
    }
    worker = insert(Worker, worker_row(holder or "w", state="endpoint", pid=0))
    message = f"card {x} was declined"
    running = {"status": "running", "fence": 1, "attempts": 1, "started_at": MOMENT}
    insert_all(
        QueuedJob,
        [
            {**same, "id": ids.queued},
            {**same, "id": ids.running, **running, "worker_id": worker},
            {**same, "id": ids.later, "run_after": FAR, "attempts": 1},
        ],
    )
    insert(
        Failure,
        {
            **{"job_id": ids.later, "job_type": job_type, "number": 1},
            **{"error_class": "ValueError", "error_message": message, "end": "failed"},
        },
    )
    over = {"finished_at": MOMENT, "attempts": 1, "crashes": 0, "started_at": MOMENT}
    failed = {"error_class": "ValueError", "error_message": message, "result": x}
    insert_all(
        ArchivedJob,
        [
            {**same, **over, **failed, "id": ids.archived, "status": "failed"},
            {**same, **over, "id": ids.earlier, "status": "succeeded"},
        ],
    )


def add_hidden() -> None:
    """Jobs of others, on each side of one's own: of another queue, of another job type,
    and of both; and what was done to them."""
    insert(JobType, {"name": SECRET, "sensitive": ["x", "note"]})
    others = [(KEEP, THEIRS), (SECRET, OURS), (SECRET, THEIRS), (KEEP, "tenant-ab")]
    for ids, (job_type, queue) in zip(HIDDEN, others, strict=True):
        add_jobs(ids, job_type, queue, holder=f"{job_type} {queue}", x=4711)
    enqueue(KEEP, {"a": 1}, queue=THEIRS, unique_key=KEY)
    enqueue(REMOTE, {}, queue=THEIRS, priority=9)
    theirs = Selection(Table.QUEUED, (Term("queue", THEIRS),))
    bulk.start(bulk.draft("cancel", theirs, id=UNKNOWN).id, by="somebody")


Request = tuple[str, str, Any]


def requests(ids: Iterable[UUID], scopes: Iterable[str]) -> Iterator[Request]:
    """A request for each operation with each of these ids, and each job type, queue
    and search."""
    for operation, (scope, _permission) in OPERATIONS.items():
        if scope not in scopes:
            continue
        method, _, path = operation.partition(" ")
        path = path.removeprefix("/v1")
        body = BODIES.get(operation)
        if operation == "POST /v1/operations":
            yield from (("POST", path, one) for one in operation_bodies())
        elif operation == "PATCH /v1/jobs/{job_type}/{id}":
            for job_type, _queue, id in values(path, ids):
                filled = path.format(job_type=job_type, id=f"job_{id}")
                yield from ((method, filled, one) for one in changes())
        elif path.endswith("-jobs"):
            yield from (("GET", f"{path}?{query}", None) for query in queries(path))
        else:
            for job_type, queue, id in values(path, ids):
                names = {"job_type": job_type, "queue": queue, "id": f"job_{id}"}
                filled = path.format(**names, operation=UNKNOWN, worker=1)
                yield method, filled, ending(operation, body)
    several = [{"data": {"a": 1}, "queue": OURS, "id": f"job_{id}"} for id in ids]
    yield from (("POST", f"/jobs/{KEEP}", {"jobs": [one]}) for one in several)
    unique = {"data": {"a": 1}, "queue": OURS, "unique_key": KEY}
    yield "PUT", f"/jobs/{KEEP}/job_{UUID(int=98)}", unique
    yield "POST", f"/jobs/{KEEP}", {"jobs": [unique]}
    node = {"name": "node", "job_types": [REMOTE], "queues": [OURS]}
    yield "POST", "/workers", node
    yield "POST", "/workers", {**node, "queues": [THEIRS]}


def values(path: str, ids: Iterable[UUID]) -> Iterator[tuple[str, str, UUID]]:
    """Job types, queues and ids, as far as this path has them."""
    for job_type in (KEEP, SECRET) if "{job_type}" in path else ("",):
        for queue in (OURS, THEIRS) if "{queue}" in path else ("",):
            for id in ids if "{id}" in path else (UNKNOWN,):
                yield job_type, queue, id


def ending(operation: str, body: Any) -> Any:
    """A body that bears on the job whatever it is."""
    if operation == "PUT /v1/jobs/{job_type}/{id}":
        return {**body, "queue": OURS}
    if operation == "POST /v1/jobs/{job_type}":
        return {"jobs": [{"data": {"a": 1}, "queue": OURS}]}
    if operation == "POST /v1/jobs/{job_type}/{id}":
        return {"attempt": 5, "status": "succeeded", "result": "forged"}
    return body


def searches(path: str) -> Iterator[str]:
    """A search that others' jobs meet, for each field."""
    yield ""
    table = Table.ARCHIVED if "archived" in path else Table.QUEUED
    met = {
        **{"type": SECRET, "queue": THEIRS, "priority": "0", "attempts": "1"},
        **{"worker": f'"{KEEP} {THEIRS}"', "error": "ValueError", "by": "somebody"},
        **{"created": ">2026-10-01", "due": ">2026-10-01", "started": ">2026-10-01"},
        **{"replay-of": str(UNKNOWN), "operation": str(UNKNOWN), "tag": "old"},
        **{"group": str(UUID(int=4711)), "state": "retrying", "status": "failed"},
        **{"finished": ">2026-10-01", "ran": "<9d", "waited": "<9d", "release": "x"},
        **{"replayed": "no", "text": "declined", "id": f"job_{HIDDEN[0].queued}"},
    }
    for name, field in FIELDS.items():
        if table not in field.tables or name == "id" or field.value_type in SEVERAL:
            continue
        if name == "data":
            yield from ("data.a.x:4711", "data.a.x:1", "data.a.password:1234")
        elif name == "text":
            yield from ("declined", '"card 4711"')
        else:
            yield f"{name}:{met[name]}"
    yield f"job_{HIDDEN[0].queued}"
    yield f"job_{HIDDEN[0].archived}"


def queries(path: str) -> Iterator[str]:
    """The query strings of a list."""
    for where in searches(path):
        yield urlencode({"where": where, "limit": PAGE})
    for more in ({"name": SECRET}, {"name": KEEP}, {"limit": 1}):
        yield urlencode(more)


def changes() -> Iterator[Any]:
    """Changes of a job, also by guesses of what it has."""
    yield {"priority": 7}
    for x, pin in ((1, "1"), (4711, "1"), (1, "1234"), (1, "••••")):
        guess = {"a": {"x": x, "password": pin}}
        yield {"data": {"a": 7}, "if_data": guess}


def operation_bodies() -> Iterator[Any]:
    """Bulk operations on what searches find."""
    for kind, path in (("cancel", "queued"), ("replay", "archived")):
        for where in searches(path):
            if re.match("data|queue|type|.*card|job_|$", where):
                yield {"kind": kind, "where": where, "dry_run": True}
    yield {"kind": "cancel", "where": ""}


def seen(client: Program, request: Request, kept: Sequence[Any]) -> tuple[int, str]:
    """The answer to this request, without what no two answers have in common. It must
    leave what others have as it is ``kept``."""
    method, path, body = request
    with undone():
        sent = client.send(method, path, body)
        text = sent.content.decode()
        document = json.loads(text)
        if cursor := isinstance(document, dict) and document.get("cursor"):
            text += json.dumps(signing.loads(cursor, salt=SALT))
            text = text.replace(cursor, "CURSOR")
        if method == "POST" and path == "/workers" and sent.status_code == 201:
            claim = f"/workers/{document['id']}/claim"
            text = client.send("POST", claim, {"limit": 1}).content.decode()
        if kept and method != "GET":
            assert hidden_rows() == kept, request
        return sent.status_code, plain(text)


def hidden_rows() -> list[Any]:
    """What others have, which no request may change."""
    theirs = Q(queue__in=[THEIRS, "tenant-ab"]) | Q(job_type=SECRET)
    jobs = [model._default_manager.filter(theirs) for model in (QueuedJob, ArchivedJob)]
    types = JobType.objects.filter(name__in=(SECRET, KEEP))
    queues = Queue.objects.filter(name=THEIRS)
    tables = [*jobs, types.order_by(), queues.order_by()]
    return [sorted(map(str, rows.values())) for rows in tables]


def plain(text: str) -> str:
    """The text without new ids and moments."""
    ids = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    known = {str(id) for id in NAMED}
    text = re.sub(ids, lambda m: m[0] if m[0] in known else "NEW", text)
    return re.sub(r"2026-11-2\d[T ][0-9:.]+(Z|\+00:00)|program-\d+|\d+\.\d+", "…", text)


Answers = dict[str, tuple[int, str]]


def changed(first: Answers, second: Answers) -> dict[str, Any]:
    """The answers that differ."""
    return {
        key: (first[key], second[key]) for key in first if first[key] != second[key]
    }


def answers_in(
    world: Callable[[], None],
    client: Program,
    ids: Iterable[UUID] = OWN_NAMED,
    scopes: Iterable[str] = ("read", "operate"),
    *,
    keeps_others: bool = False,
) -> Answers:
    """All answers in this world, by their requests."""
    with undone():
        world()
        forget_facts()
        kept = hidden_rows() if keeps_others else []
        made = {
            repr(request): seen(client, request, kept)
            for request in requests(ids, scopes)
        }
    forget_facts()
    return made


@pytest.fixture(autouse=True)
def _ours() -> None:
    insert(JobType, {"name": REMOTE})
    add_jobs(OWN, KEEP, OURS)
    enqueue(REMOTE, {"n": 1}, queue=OURS)


def nothing() -> None:
    """Nobody else's jobs."""


@pytest.mark.dear
@pytest.mark.parametrize("scopes", [ALL, ("enqueue", "work")], ids=["all", "some"])
def test_jobs_of_others_change_no_answer(
    scopes: tuple[str, ...], program: Callable[..., Program]
) -> None:
    client = program(
        *scopes, job_types=["tests.*", "fleet.*"], queues=[OURS, "tenant-a-*"]
    )
    ids = (*OWN_NAMED, *HIDDEN_NAMED)
    alone, beside = (
        answers_in(world, client, ids, scopes, keeps_others=True)
        for world in (nothing, add_hidden)
    )
    taken = 0
    for request, ((before, _text), (status, text)) in changed(alone, beside).items():
        # An id, or a unique key, can be had once: that is all that is told.
        assert (before, status) == (202, 409), (request, before, text)
        assert '"duplicate_job"' in text, request
        assert "Another job has this id or unique key." in text, request
        taken += 1
    assert taken == 2 + 2 * len(HIDDEN_NAMED)


def contents(x: int, pin: str) -> Callable[[], None]:
    """The same jobs of one's own, with other contents."""

    def world() -> None:
        for model in (QueuedJob, ArchivedJob):
            rows = model._default_manager.filter(queue=OURS, job_type_id=KEEP)
            rows.update(data={"a": {"x": x, "password": pin}}, metadata={"note": x})
        message = f"card {x} was declined"
        ArchivedJob.objects.filter(status="failed").update(
            error_message=message, result=x
        )
        ArchivedJob.objects.update(fingerprint=UUID(int=x))
        Failure.objects.update(error_message=message, fingerprint=UUID(int=x))
        waiting = Selection(Table.QUEUED, (Term("data", x, path=("a", "x")),))
        BulkOperation.objects.all().delete()
        bulk.draft("cancel", waiting, id=UNKNOWN)

    return world


@pytest.mark.dear
def test_contents_change_no_answer_to_who_may_not_see_them(
    program: Callable[..., Program],
) -> None:
    client = program("read", "operate", "enqueue")
    first, second = (answers_in(contents(x, "1"), client) for x in (1, 4711))
    assert changed(first, second) == {}


@pytest.mark.dear
def test_secrets_change_no_answer_to_who_sees_the_data(
    program: Callable[..., Program],
) -> None:
    client = program("read-data", "operate")
    first, second = (answers_in(contents(1, pin), client) for pin in ("1234", "9"))
    assert changed(first, second) == {}
    shown = client.send("GET", f"/jobs/job_{OWN.queued}").json()
    assert shown["data"] == {"a": {"x": 1, "password": "••••"}}


@pytest.mark.dear
@USERS
def test_contents_change_no_answer_to_a_user_who_may_not_see_them() -> None:
    user = User.objects.create_user("bert")
    more = {"cancel_queuedjob", "edit_job_data", "unbounded_bulkoperation"}
    allow(user, PERMISSIONS | more)
    client = Program()
    client.force_login(user)
    first, second = (answers_in(contents(x, "1"), client) for x in (1, 4711))
    assert changed(first, second) == {}
