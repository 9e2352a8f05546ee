"""Addresses with fields: which ones can be used, and how they are filled."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from django_jobqueue.text.url_templates import filled, problem
from tests.support.tables import differing

KNOWN = ("id", "title")


NO_ADDRESS = (
    "javascript:alert({id})",
    "JavaScript://tracker.example/%0a{id}",
    "data:text/html,{id}",
    "//tracker.example/{id}",
    "/browse/{id}",
    "https:///{id}",
    "https://{id}/",
    "https://tracker.example.{id}/",
    "https://{id}@tracker.example/",
    "https://[tracker/{id}",
    "https://tracker.example/ {id}",
    "https://tracker.example/\n{id}",
    'https://tracker.example/"{id}',
    "",
)
NO_FIELD = ("{id", "{}", "{id.__class__}", "{id!r}")


def test_a_web_address_with_known_fields_can_be_used_and_no_other() -> None:
    for template in (
        "https://tracker.example/browse/{id}",
        "http://localhost:8000/new?title={title}&id={id}#top",
        "HTTPS://tracker.example/{title}",
        "https://tracker.example?q={id}",
        "https://tracker.example/static",
        "https://[::1]/{id}",
    ):
        assert problem(template, KNOWN) is None
    site, brace = "https://tracker.example/", "a brace that belongs to no field"
    rows = [
        *((template, KNOWN, "http:// or https://") for template in NO_ADDRESS),
        *((site + field, KNOWN, brace) for field in NO_FIELD),
        (site + "{number}", KNOWN, "the field 'number'"),
    ]
    assert differing(rows, problem, str.__contains__) == []
    assert problem(site, KNOWN, "id") == f"must have the field {{id}}, not '{site}'"


def test_a_value_stays_in_the_place_of_its_field() -> None:
    template = "https://tracker.example/new?title={title}&id={id}"
    for value in (
        "a&b=c#d?e/f",
        "\"'><script>",
        "https://evil.example/\r\nSet-Cookie: a=b",
        "{id}{title}%41+ ",
        "“Ünïcödé” 🎈",
    ):
        url = urlsplit(filled(template, {"title": value, "id": "7"}))
        assert (url.scheme, url.netloc, url.path) == (
            *("https", "tracker.example", "/new"),
        )
        assert url.fragment == ""
        assert parse_qs(url.query) == {"title": [value], "id": ["7"]}
    assert filled("https://tracker.example/{id}", {"id": "\ud83c"}).endswith("/%3F")
