"""One translation is complete, which shows that everything can be translated."""

from __future__ import annotations

import re
from gettext import GNUTranslations

import pytest
from django.utils import translation
from django.utils.translation import gettext, ngettext

from tests.architecture.source import PACKAGE
from tests.locale.messages import Message, messages

CATALOGUE = PACKAGE / "locale" / "de" / "LC_MESSAGES"
PLACEHOLDER = re.compile(r"%\(\w+\)[-\d.,]*[a-z]|%[sd]")


@pytest.fixture(scope="module")
def german() -> GNUTranslations:
    """The catalogue as it is shipped."""
    with (CATALOGUE / "django.mo").open("rb") as file:
        return GNUTranslations(file)


def translated(catalogue: GNUTranslations, message: Message) -> list[str]:
    """What the catalogue has for a message, all forms; nothing if it has none."""
    # private: gettext() answers with the message for what is missing
    held = catalogue._catalog  # type: ignore[attr-defined]
    if len(message) == 1:
        return [held[message[0]]] if message[0] in held else []
    forms = [(message[0], n) for n in range(2)]
    return [held[form] for form in forms if form in held]


@pytest.mark.dear
def test_every_message_is_translated_with_its_placeholders(
    german: GNUTranslations,
) -> None:
    assert len(messages()) > 1_000
    wrong = {}
    for message, file in messages().items():
        wanted = [sorted(PLACEHOLDER.findall(form)) for form in message]
        there = translated(german, message)
        if [sorted(PLACEHOLDER.findall(form)) for form in there] != wanted:
            wrong[message] = (file, there)
    assert wrong == {}


def test_the_source_of_the_catalogue_is_what_is_shipped(
    german: GNUTranslations,
) -> None:
    source = (CATALOGUE / "django.po").read_text()
    assert "#, fuzzy" not in source
    entries = len(re.findall("^msgid ", source, re.M))
    # private: there is no other list
    held = german._catalog  # type: ignore[attr-defined]
    assert entries == len({key[0] if isinstance(key, tuple) else key for key in held})


def test_django_speaks_it() -> None:
    with translation.override("de"):
        assert gettext("Archived jobs") == "Archivierte Jobs"
        text = ngettext("Replay %(count)s job?", "Replay %(count)s jobs?", 3)
        assert text % {"count": 3} == "3 Jobs wiederholen?"
