"""A value is found in whatever case, form and escapes a text has it, by Python and by
PostgreSQL, whose collation may know ASCII alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus

import pytest
from django.db import connection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from django_jobqueue.contrib.privacy.personal_value import ERASED, PersonalValue
from django_jobqueue.contrib.privacy.spellings import in_json
from django_jobqueue.domain.states import Holds

NAMES: Final = (
    *("Müller Anna", "STRAẞE 12", "strasse 12", "Łucja Żółć", "Анна Иванова"),
    *(
        "Σίσυφος",
        'O\'Neill "Max"',
        "İpek Yıldız",
        "smith@example.com",
        "100% K/S",
        "Weiſs \u212a.",
        "Flussschiff AASß",
        "Affi Suffix",
        "Nguyễn Lộc Việt",
        "Ọ̀ṣun ǅemal Adé",
        "שָּׁלוֹם ᾈδης",
    ),
)


def marks_last_first(text: str) -> str:
    """Equal: the marks of each letter in another order."""
    return "".join(one[0] + one[:0:-1] for one in map(apart, text))


def apart(letter: str) -> str:
    """The letter, and its marks."""
    return normalize("NFD", letter)


def tone_apart(text: str) -> str:
    """Equal: as the Vietnamese keyboard of Windows writes, the last mark alone."""
    return "".join(
        normalize("NFC", one[0] + one[2:]) + one[1:2] for one in map(apart, text)
    )


FORMS: Final[tuple[Callable[[str], str], ...]] = (
    *(marks_last_first, tone_apart),
    *(str, str.upper, str.lower, str.title, str.swapcase, str.casefold),
    *(lambda text: normalize("NFD", text), lambda text: normalize("NFD", text.upper())),
)
ESCAPES: Final[tuple[Callable[[str], str], ...]] = (
    *(str, in_json, quote, quote_plus, lambda text: quote(text, safe="")),
    *(lambda text: json.dumps(text)[1:-1], lambda text: repr(text)[1:-1]),
)
CASED = st.characters(categories=("Lu", "Ll", "Lt"))


def is_case_of(text: str, value: str) -> bool:
    """Whether it differs in case alone: title() and casefold() may do more."""
    one, other = (normalize("NFC", each).casefold() for each in (text, value))
    return one == other


@pytest.mark.django_db
@pytest.mark.parametrize("name", NAMES)
def test_each_spelling_is_found_and_erased(name: str) -> None:
    person = PersonalValue(name)
    missed = []
    for form in FORMS:
        if not is_case_of(form(name), name):
            continue
        for escape in ESCAPES:
            text = f"<{escape(form(name))}>"
            if person.erased(Holds.TEXT, text) != f"<{ERASED}>":
                missed.append(("erased", text))
            missed += [
                ("found", row)
                for row in (text, json.dumps({"a": text}, ensure_ascii=False))
                if not found(person.pattern, row)
            ]
    assert missed == []


def found(pattern: str, text: str) -> bool:
    """As the erasure asks, where the collation knows ASCII alone."""
    with connection.cursor() as cursor:
        cursor.execute('SELECT %s::text COLLATE "C" ~* %s', [text, pattern])
        (is_found,) = cursor.fetchone()
    return bool(is_found)


@pytest.mark.dear
@pytest.mark.django_db
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example("ßßßß", str)
@example("ẞsẞẞẞ", str.lower)
@given(
    st.text(CASED, min_size=4, max_size=8)
    | st.text("Ssſßẞfiﬁﬀﬃ", min_size=4, max_size=8),
    st.sampled_from(FORMS),
)
def test_any_letters_are_found_in_any_case(
    name: str, form: Callable[[str], str]
) -> None:
    text = form(name)
    if is_case_of(text, name):
        person = PersonalValue(name)
        assert found(person.pattern, f"<{text}>")
        assert person.erased(Holds.TEXT, f"<{text}>") == f"<{ERASED}>"


def test_a_neighbour_of_the_name_stays() -> None:
    for name, others in {
        "Müller Anna": ("Muller Anna", "Möller Anna", "Müller Annas", "XMüller Anna"),
        "Анна": ("Анны", "Жанна"),
    }.items():
        for other in others:
            assert PersonalValue(name).erased(Holds.TEXT, other) == other


@pytest.mark.dear
def test_a_long_value_makes_no_endless_pattern() -> None:
    for letter in ("İ", "a", "s"):
        pattern = PersonalValue(letter * 500).pattern
        assert len(pattern) < 1_000_000
        assert re.search(pattern, letter.upper() * 500, re.IGNORECASE)
