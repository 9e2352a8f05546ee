"""Addresses with fields: which ones can be used, and how they are filled."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from django_jobqueue.text.url_templates import filled, problem

KNOWN = ("id", "title")


@pytest.mark.parametrize(
    "template",
    [
        "https://tracker.example/browse/{id}",
        "http://localhost:8000/new?title={title}&id={id}#top",
        "HTTPS://tracker.example/{title}",
        "https://tracker.example?q={id}",
        "https://tracker.example/static",
        "https://[::1]/{id}",
    ],
)
def test_a_web_address_with_known_fields_can_be_used(template: str) -> None:
    assert problem(template, KNOWN) is None


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("javascript:alert({id})", "http:// or https://"),
        ("JavaScript://tracker.example/%0a{id}", "http:// or https://"),
        ("data:text/html,{id}", "http:// or https://"),
        ("//tracker.example/{id}", "http:// or https://"),
        ("/browse/{id}", "http:// or https://"),
        ("https:///{id}", "http:// or https://"),
        ("https://{id}/", "http:// or https://"),
        ("https://tracker.example.{id}/", "http:// or https://"),
        ("https://{id}@tracker.example/", "http:// or https://"),
        ("https://[tracker/{id}", "http:// or https://"),
        ("https://tracker.example/ {id}", "http:// or https://"),
        ("https://tracker.example/\n{id}", "http:// or https://"),
        ('https://tracker.example/"{id}', "http:// or https://"),
        ("", "http:// or https://"),
        ("https://tracker.example/{number}", "the field 'number'"),
        ("https://tracker.example/{id", "a brace that belongs to no field"),
        ("https://tracker.example/{}", "a brace that belongs to no field"),
        ("https://tracker.example/{id.__class__}", "a brace that belongs to no field"),
        ("https://tracker.example/{id!r}", "a brace that belongs to no field"),
    ],
)
def test_any_other_one_is_refused_with_the_reason(template: str, said: str) -> None:
    assert said in (problem(template, KNOWN) or "")


def test_a_field_may_be_needed() -> None:
    assert problem("https://tracker.example/", KNOWN, "id") == (
        "must have the field {id}, not 'https://tracker.example/'"
    )


@pytest.mark.parametrize(
    "value",
    [
        "a&b=c#d?e/f",
        "\"'><script>",
        "https://evil.example/\r\nSet-Cookie: a=b",
        "{id}{title}%41+ ",
        "“Ünïcödé” 🎈",
    ],
)
def test_a_value_stays_in_the_place_of_its_field(value: str) -> None:
    template = "https://tracker.example/new?title={title}&id={id}"
    url = urlsplit(filled(template, {"title": value, "id": "7"}))
    assert (url.scheme, url.netloc, url.path) == ("https", "tracker.example", "/new")
    assert (url.fragment, parse_qs(url.query)) == ("", {"title": [value], "id": ["7"]})


def test_half_a_character_is_no_error() -> None:
    assert filled("https://tracker.example/{id}", {"id": "\ud83c"}).endswith("/%3F")
