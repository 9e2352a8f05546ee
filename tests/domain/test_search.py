"""What people type to find jobs, and what it means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django_jobqueue.search import SearchError, parse
from django_jobqueue.search.parser import qualifiers
from django_jobqueue.search.selection import FIELDS, SEVERAL, Selection, Table, Term
from tests.support.tables import differing, refusal

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
DAY = timedelta(days=1)
ID = UUID("01a1fefc-a7b0-7364-875d-a99c8c940e69")


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def terms(text: str, table: Table = Table.ARCHIVED) -> list[Term]:
    """The terms of a search, which a selection takes."""
    found = parse(text, table, NOW).terms
    assert Selection(table, found).to_json()
    return list(found)


def problem(text: str, table: Table = Table.ARCHIVED) -> str:
    return refusal(SearchError, parse, text, table, NOW)


TERMS: list[tuple[str, str, str, Any]] = [
    ("type:shop.jobs.send_receipt", "type", "=", "shop.jobs.send_receipt"),
    ("TYPE:x", "type", "=", "x"),
    ("job_type:x", "type", "=", "x"),
    ('queue:"night mail"', "queue", "=", "night mail"),
    ('tag:"a \\"b\\" c"', "tag", "=", 'a "b" c'),
    ("status:failed", "status", "=", "failed"),
    ("state:failed", "status", "=", "failed"),
    ("worker:web-1:4100", "worker", "=", "web-1:4100"),
    ("error:TimeoutError", "error", "=", "TimeoutError"),
    ("by:anna", "by", "=", "anna"),
    (f"group:{ID}", "group", "=", ID),
    (f"fp:{ID.hex}", "group", "=", ID),
    (f"replay-of:{ID}", "replay-of", "=", ID),
    (f"replay_of:job_{ID}", "replay-of", "=", ID),
    (f"operation:{ID}", "operation", "=", ID),
    ("replayed:yes", "replayed", "=", True),
    ("replayed:no", "replayed", "=", False),
    ("attempts:>3", "attempts", ">", 3),
    ("attempts:3", "attempts", "=", 3),
    ("priority:>=5", "priority", ">=", 5),
    ("priority:<-5", "priority", "<", -5),
    ("ran:>20s", "ran", ">", 20_000),
    ("ran:<=1.5s", "ran", "<=", 1_500),
    ("waited:>1h30m", "waited", ">", 5_400_000),
    ("waited:<250ms", "waited", "<", 250),
    ("finished:>2026-11-20", "finished", ">=", at(21)),
    ("finished:>=2026-11-20", "finished", ">=", at(20)),
    ("finished:<2026-11-20", "finished", "<", at(20)),
    ("finished:<=2026-11-20", "finished", "<", at(21)),
    ("finished:>2026-11-20T14:00", "finished", ">=", at(20, 14, 1)),
    ('finished:<"2026-11-20 14:00"', "finished", "<", at(20, 14)),
    ("finished:<2026-11-20T14:00+02:00", "finished", "<", at(20, 12)),
    ("finished:>-2h", "finished", ">", NOW - timedelta(hours=2)),
    ("due:<+1d", "due", "<", NOW + DAY),
    ("created:<now", "created", "<", NOW),
    ("created:>=yesterday", "created", ">=", at(20)),
]


def test_a_term_is_typed() -> None:
    def read(text: str) -> list[tuple[str, str, Any, type]]:
        return [(t.field, t.operator, t.value, type(t.value)) for t in terms(text)]

    rows = [(text, [(*term, type(term[-1]))]) for text, *term in TERMS]
    assert differing(rows, read) == []

    def read(text: str) -> tuple[Any, ...]:
        (found,) = terms(text, Table.QUEUED)
        return found.field, found.path, found.value, type(found.value)

    rows = [(text, ("data", path, value, type(value))) for text, path, value in DATA]
    assert differing(rows, read) == []


SPANS: list[tuple[str, datetime, datetime]] = [
    ("finished:2026-11-20", at(20), at(21)),
    ("finished:today", at(21), at(22)),
    ("finished:2026-11-20T14:00", at(20, 14), at(20, 14, 1)),
    ("finished:2026-11-18..2026-11-20", at(18), at(21)),
    ("finished:-2h..now", NOW - timedelta(hours=2), NOW),
]


def test_a_span_of_time_ends_before_its_end_and_a_range_of_numbers_with_it() -> None:
    def between(field: str, least: Any, most: Any, below: str = "<=") -> list[Term]:
        return [Term(field, least, ">="), Term(field, most, below)]

    rows = [(text, between("finished", *span, "<")) for text, *span in SPANS]
    rows.append(("attempts:2..4", between("attempts", 2, 4)))
    rows.append(("ran:1s..5s", between("ran", 1_000, 5_000)))
    assert differing(rows, terms) == []


DATA: list[tuple[str, tuple[str, ...], Any]] = [
    ("data.order_id:7", ("order_id",), 7),
    ('data.order_id:"7"', ("order_id",), "7"),
    ("data.price:-7.50", ("price",), -7.5),
    ("data.paid:true", ("paid",), True),
    ("data.paid:null", ("paid",), None),
    ("data.paid:True", ("paid",), "True"),
    ('data.customer.name:"Ann Lee"', ("customer", "name"), "Ann Lee"),
    ('data."a key.with: all".b:x', ("a key.with: all", "b"), "x"),
    ("data.url:http://x/?a=1", ("url",), "http://x/?a=1"),
    ("args.zip:007", ("zip",), "007"),
    ('data.none:""', ("none",), ""),
]


def test_terms_come_together() -> None:
    text = '  type:x   error:"A B"\tpriority:>1 '
    assert [t.field for t in terms(text)] == ["type", "error", "priority"]
    found = parse(f"status:failed {ID} 01a1fe", Table.ARCHIVED, NOW)
    assert [t.field for t in found.terms] == ["status"]
    assert [search.is_exact for search in found.ids] == [True, False]
    assert parse(f"id:{ID}", Table.QUEUED, NOW).ids[0].first == ID
    assert parse("  ", Table.QUEUED, NOW) == parse("", Table.QUEUED, NOW)


WORDS: list[tuple[str, list[str]]] = [
    *(("declined", ["declined"]), ("card declined", ["card", "declined"])),
    *(('"card declined"', ["card declined"]), ("text:declined", ["declined"])),
    *(("503", ["503"]), ('"503503"', ["503503"]), ('"facade"', ["facade"])),
    *(('"HTTP: 503"', ["HTTP: 503"]), ("50%_off", ["50%_off"])),
]


def test_a_word_is_looked_for_in_texts_unless_it_can_be_an_id() -> None:
    for table in Table:
        rows = [
            (text, table, [Term("text", one) for one in all]) for text, all in WORDS
        ]
        assert differing(rows, terms) == []
    for text in ("facade", "503503", "01a1fe"):
        found = parse(text, Table.ARCHIVED, NOW)
        assert (len(found.ids), found.terms) == (1, ())


PROBLEMS: list[tuple[str, str]] = [
    ("tpye:x", "There is no “tpye:”. Did you mean “type:”?"),
    ("-type:x", "There is no “-type:”. Did you mean “type:”?"),
    ("zzz:x", "There is no “zzz:”. These can be searched: type:, queue:,"),
    ("id:order", "“order” is not a job ID. Jobs are searched by id: a whole one"),
    ("id:abc", "“abc” is not a job ID."),
    ('""', "There is nothing between the quotation marks."),
    ("type:", "“type:” needs a value."),
    ("type:>x", "“type:” cannot be compared by >."),
    ("data.a:>1", "“data:” cannot be compared by >."),
    ("data:7", "Name a key"),
    ("type.x:7", "Only “data.” has keys."),
    ("attempts:many", "“many” is not a whole number."),
    ("attempts:" + "9" * 19, "is not a whole number."),
    ("attempts:1..", "has no upper end"),
    ("ran:>soon", "“soon” is not a duration. Write one like these: 500ms"),
    ("ran:20s", "Write “ran:>20s” or “ran:<20s”."),
    ("finished:-2h", "Write “finished:>-2h” or “finished:<-2h”."),
    ("finished:>soon", "“soon” is not a time. Write one like these: 2026-11-20"),
    ("finished:2026-02-30", "“2026-02-30” is not a time."),
    ("finished:<9999-12-31", "is not a time."),
    ("finished:>-9999999d", "is not a time."),
    ("finished:>" + "9" * 400 + "d", "is not a time."),
    ("group:x", "“x” is not a job ID; “group:” needs a whole one."),
    ("replayed:perhaps", "Write “replayed:yes” or “replayed:no”."),
    ("data.a:1e999", "“1e999” is too large a number."),
    ('type:"x', "an unclosed quotation mark"),
    ('type:x"', "an unclosed quotation mark"),
    ("type:a\x00", "characters that no job can have"),
    ("data.a\x00:a", "characters that no job can have"),
    ("data.a:\ud800", "characters that no job can have"),
    ("x" * 1_001, "at most 1000 characters"),
]


def test_what_is_not_understood_says_why() -> None:
    assert differing(PROBLEMS, problem, str.__contains__) == []
    why = "“ran:” is for archived jobs; these have not ended."
    assert problem("ran:>1s", Table.QUEUED) == why
    assert "quotation mark" in problem('"\\' * 450 + '"')
    assert terms("a." * 499)
    assert terms("status:running", Table.QUEUED) == [Term("state", "running")]
    assert problem("status:runing", Table.QUEUED).endswith("Did you mean “running”?")
    assert problem("status:faild").endswith("Did you mean “failed”?")
    assert problem("status:x") == (
        "There is no state “x”, only succeeded, failed, expired, cancelled."
    )


def test_every_field_can_be_searched() -> None:
    for table in Table:
        found = [f for f in FIELDS.values() if table in f.tables]
        fields = {field.name for field in found if field.value_type not in SEVERAL}
        assert {name.removesuffix(".key") for name in qualifiers(table)} == fields
