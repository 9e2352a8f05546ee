"""Where a personal value stands in texts and in JSON, and what they are without it."""

from __future__ import annotations

import json
import re
from typing import Any

from django_jobqueue.contrib.privacy.personal_value import (
    ERASED,
    Holds,
    PersonalValue,
    problem_of,
)
from tests.support.tables import differing

MAIL = "anna@example.com"


def text(value: str, content: str) -> str:
    return PersonalValue(value).erased(Holds.TEXT, content)


def data(value: str, content: Any, key: str = "") -> Any:
    found = PersonalValue(value, key).erased(Holds.DATA, json.dumps(content))
    return json.loads(found)


def test_a_text_is_without_the_value_and_that_of_another_person_stays() -> None:
    for content in (
        MAIL,
        "Anna@Example.com",
        f"no mailbox <{MAIL}>.",
        f"to={MAIL},",
        f"'{MAIL}'",
        f"line\\n{MAIL}\\n",
        "GET /u?mail=anna%40example.com&x=1",
        "GET /u%3Fmail%3Danna%40example.com",
        f"{MAIL} is not anna",
        f"mailto:{MAIL}",
    ):
        erased = text(MAIL, content)
        assert ERASED in erased
        assert MAIL not in erased.lower()
        assert "anna%40" not in erased
    others = [f"jo{MAIL}", f"mary.{MAIL}", f"jo+{MAIL}", f"{MAIL}.br", f"{MAIL}munity"]
    for content in (*others, "anna@example.org"):
        assert text(MAIL, content) == content
        assert data(MAIL, {"to": content}) == {"to": content}


def test_a_number_is_a_whole_word_of_a_text_and_a_whole_value_of_data() -> None:
    assert text("4711", "customer 4711, order 14711") == (
        f"customer {ERASED}, order 14711"
    )
    assert text("4711", "invoice_4711.pdf") == f"invoice_{ERASED}.pdf"
    before = {"a": 4711, "b": "4711", "c": 47110, "d": "no 4711", "e": 4711.0}
    after = {"a": ERASED, "b": ERASED, "c": 47110, "d": "no 4711", "e": ERASED}
    assert data("4711", before) == after
    # Digits that begin with a zero are a text.
    assert data("004711", {"a": 4711, "b": "004711"}) == {"a": 4711, "b": ERASED}


def test_other_values_are_erased_within_texts_and_keys_and_all_else_stays() -> None:
    before: Any = {"subject": f"Order of {MAIL}", "to": [{"mail": MAIL.upper()}]}
    after = {"subject": f"Order of {ERASED}", "to": [{"mail": ERASED}]}
    assert data(MAIL, before) == after
    before = {MAIL: 1, MAIL.upper(): 2, ERASED: 3}
    assert sorted(data(MAIL, before).values()) == [1, 2, 3]
    assert MAIL not in json.dumps(data(MAIL, before)).lower()
    content = f'{{"a": 1.10, "b": 123456789012345678901234567890.50, "c": "{MAIL}"}}'
    erased = PersonalValue(MAIL).erased(Holds.DATA, content)
    assert erased == content.replace(MAIL, ERASED)
    content = "[" * 100_000 + f'"{MAIL}"' + "]" * 100_000
    assert PersonalValue(MAIL).erased(Holds.DATA, content) == json.dumps(ERASED)


def test_with_a_key_only_its_values_are_erased() -> None:
    before = {"id": 7, "customer": {"id": [7]}, "seats": 7}
    erased = [
        ("id", {"id": ERASED, "customer": {"id": [ERASED]}, "seats": 7}),
        ("customer.id", {"id": 7, "customer": {"id": [ERASED]}, "seats": 7}),
        ("seats", {"id": 7, "customer": {"id": [7]}, "seats": ERASED}),
    ]
    assert differing(erased, lambda key: data("7", before, key)) == []
    personal, lines = PersonalValue("4711", "id"), [[4711, "info", "customer 4711"]]
    assert personal.erased(Holds.TEXT, "customer 4711") == "customer 4711"
    content = json.dumps(lines)
    assert personal.erased(Holds.TEXTS, content) == content
    erased = json.loads(PersonalValue("4711").erased(Holds.TEXTS, content))
    assert erased == [[4711, "info", f"customer {ERASED}"]]


def test_a_selection_is_without_the_value_and_remains_one() -> None:
    terms = [["attempts", ">", 4711, []], ["data", "=", 4711, ["customer", "id"]]]
    selection = json.dumps({"table": "queued", "nothing": False, "terms": terms})
    for key in ("", "customer.id"):
        erased = PersonalValue("4711", key).erased(Holds.SELECTION, selection)
        assert [term[2] for term in json.loads(erased)["terms"]] == [4711, ERASED]
    erased = PersonalValue("4711", "order").erased(Holds.SELECTION, selection)
    assert erased == selection
    for value in (MAIL, "Anna Müller", 'O"Brien\\x', "O'Brien", "4711"):
        personal = PersonalValue(value)
        forms = [repr(value), json.dumps(value), json.dumps({"a": value})]
        for one in [value, *forms]:
            row = json.dumps([1.5, one], ensure_ascii=False)  # as the text of jsonb
            for holds, content in ((Holds.TEXT, one), (Holds.TEXTS, row)):
                assert personal.erased(holds, content) != content, content
                assert re.search(personal.pattern, content, re.IGNORECASE)


def test_what_is_in_too_many_rows_or_in_none_is_refused() -> None:
    wrong = (("", ""), ("abc", ""), ("x" * 501, ""), ("a\0bcd", ""), ("7", "k" * 201))
    assert [given for given in wrong if not problem_of(*given)] == []
    assert not problem_of("7", "customer_id")
    assert not problem_of("4711")
