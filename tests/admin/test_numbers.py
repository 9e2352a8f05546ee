"""Numbers read the same on every page: grouped, and with the separators of the language
that the page is in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.utils import timezone, translation

from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    JobType,
    QueuedJob,
    Report,
    Worker,
)
from django_jobqueue.stats import overview
from django_jobqueue.text import numbers
from tests.admin.endpoints import ALL, Endpoint, Keys, keys_of
from tests.admin.scene import ADD, Scene
from tests.architecture.source import PACKAGE, modules
from tests.stats.rows import ago, histogram, rollup

LANGUAGES = ("en", "de")
# What is wrong, in which language. Numbers inside of words are ids, dates or names.
ALONE = r"(?<![\w.,:/…-])(?:{})(?![\w.,:/…-]*\w)"
WRONG = {
    "en": (r"\d{5,}", r"\d{1,3}(?:\.\d{3})+", r"\d+,\d{1,2}"),
    "de": (r"\d{5,}", r"\d{1,3}(?:,\d{3})+", r"\d+\.\d{1,2}"),
}


class Shown(HTMLParser):
    """The texts that people read, without code and values of jobs."""

    RAW = ("pre", "textarea", "script", "style", "code", "option")
    SAID = ("title", "aria-label")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._raw = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._raw += tag in self.RAW
        self.texts += [value or "" for name, value in attrs if name in self.SAID]

    def handle_endtag(self, tag: str) -> None:
        self._raw -= tag in self.RAW

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.texts.append(" ".join(data.split()))


@pytest.fixture
def keys(scene: Scene) -> Keys:
    """Rows with numbers as large as those of a busy year."""
    now = timezone.now()
    QueuedJob.objects.bulk_create(
        QueuedJob(job_type_id=ADD, run_after=now - timedelta(days=12_345))
        for _ in range(1_234)
    )
    large = {"attempts": 12_345, "max_attempts": 23_456, "crashes": 34_567}
    QueuedJob.objects.update(**large, priority=-100)
    ArchivedJob.objects.update(**large, run_ms=20_250, wait_ms=1_234_567_890_123)
    ArchivedJob.objects.filter(pk=scene.archived["succeeded"]).update(run_ms=1_250)
    Worker.objects.update(running=12_345, threads=23_456, rss=12_345_678_901)
    Report.objects.update(done=12_345.5, total=1_234_567, queries=23_456)
    JobType.objects.filter(name=ADD).update(
        concurrency=12_345, max_attempts=23_456, timeout=timedelta(days=12_345)
    )
    for minute in range(1, 40):
        rollup(
            now - timedelta(minutes=minute),
            succeeded=1_234_567,
            failed=1_234,
            retried=12_345,
            other=23_456,
            run_histogram=[12_345 * n for n in histogram(0.2, 1.25, 20.25)],
            wait_histogram=[23_456 * n for n in histogram(0.02, 12_345)],
        )
    found = keys_of(scene)
    common = {"kind": "replay", "selection": _selection(), "created_by": "anna"}
    operation = BulkOperation.objects.create(
        state="running",
        total=48_211_000,
        seen=29_880_000,
        changed=29_455_000,
        skipped={"replayed": 312_000},
        per_minute=12_000,
        started_at=ago(hours=1),
        progress_at=now,
        **common,
    )
    overview.forget()
    return {**found, "bulkoperation": operation.pk}


def _selection() -> object:
    return {"table": "archived", "nothing": False, "terms": []}


def wrong(text: str, language: str) -> list[str]:
    """The numbers in a text that are not written as the language has them."""
    return [
        found
        for pattern in WRONG[language]
        for found in re.findall(ALONE.format(pattern), text)
    ]


def texts_of(client: Client, endpoint: Endpoint, keys: Keys) -> list[str]:
    """What people read there; nothing of what is no page."""
    address = endpoint.address(keys)
    if endpoint.route and "<" not in endpoint.route:
        address += f"?keys={keys[endpoint.model]}"
    response = client.get(address)
    if response.status_code != 200 or "html" not in response.headers["Content-Type"]:
        return []
    assert f'lang="{translation.get_language()}' in response.text
    return Shown(response.text).texts


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_of_a_page_is_written_as_its_language_has_it(
    anna: Client, keys: Keys, language: str
) -> None:
    with translation.override(language):
        read = {str(endpoint): texts_of(anna, endpoint, keys) for endpoint in ALL}
    assert sum(bool(texts) for texts in read.values()) > 20
    assert {
        (page, text): found
        for page, texts in read.items()
        for text in texts
        if (found := wrong(text, language))
    } == {}


def test_the_check_notices_what_is_wrong() -> None:
    for text in ("15145", "is 48211 now", "51.914 jobs", "20,2 s", "13,3 %"):
        assert wrong(text, "en")
    for text in ("15145", "1,270 jobs", "13.3 %", "20.2 s"):
        assert wrong(text, "de")
    for text in ("01a2046d…0a2494", "web-1:41000", "2026-11-22 18:03:02", "1,270", "7"):
        assert not wrong(text, "en")
    for text in ("1.270 Jobs", "13,3 %", "2026.11.3", "3.13.1"):
        assert not wrong(text, "de")


# Where numbers are written.

OWN = {
    "management/commands/runworkers.py": "a format of logging",
    "admin/parts/charts.py": "coordinates, which no locale writes otherwise",
}
NUMBERS = re.compile(r"%\((\w+)\)[-\d.]*[dfeg]")
MAY = {
    "line": "of a text, as programs count them",
    "column": "of a text",
    "digits": "six",
    "most": "a thousand characters",
    "percent": "whole, up to 100",
    "number": "a priority, up to 100",
}


SHOWN = ("admin/", "management/", "search/", "stats/")
CONSTANT = re.compile(r"([a-z_]+\.)?[A-Z_]+")  # in a command's help, which is English


def places() -> Iterator[tuple[str, str]]:
    """Each place of pages and commands that writes a number by itself: file, and
    what."""
    for module in modules():
        if not module.is_in(*SHOWN) or module.path in OWN:
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in NUMBERS.findall(node.value):
                    if name not in MAY:
                        yield module.path, node.value
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                spec = ast.unparse(node.format_spec)
                if CONSTANT.fullmatch(ast.unparse(node.value)):
                    continue
                if re.search(r"[,_]|\d*[feg%]'?$", spec):
                    yield module.path, ast.unparse(node)


@pytest.mark.parametrize("folder", SHOWN)
def test_each_folder_that_shows_numbers_is_looked_at(folder: str) -> None:
    assert any(module.is_in(folder) for module in modules())


def test_numbers_are_written_in_one_place() -> None:
    for_programs = {
        "admin/failures/failure_page.py",  # the width of a drawing
        "management/jobqueue/health_check.py",  # figures that Nagios parses
    }
    assert [place for place in places() if place[0] not in for_programs] == []


COUNTED = re.compile(
    r"blocktrans(?:late)? count (\w+)=.*?%\}(.*?)\{%\s*endblocktrans", re.DOTALL
)


@pytest.mark.parametrize(
    "template", sorted((PACKAGE / "templates").rglob("*.html")), ids=lambda p: p.name
)
def test_no_template_shows_a_count_as_it_is(template: object) -> None:
    """What decides about the plural is a number; what is shown is one as people read
    it."""
    text = template.read_text()  # type: ignore[attr-defined]
    assert [
        name for name, body in COUNTED.findall(text) if f"{{{{ {name} }}}}" in body
    ] == []


# The formats.


@pytest.mark.parametrize(
    ("share", "english", "german"),
    [
        (None, "–", "–"),
        (0.0, "0 %", "0 %"),
        (1 / 3_056, "< 0.1 %", "< 0,1 %"),
        (0.001, "0.1 %", "0,1 %"),
        (0.041, "4.1 %", "4,1 %"),
        (0.133, "13.3 %", "13,3 %"),
        (0.5, "50.0 %", "50,0 %"),
        (0.999, "99.9 %", "99,9 %"),
        (3_055 / 3_056, "> 99.9 %", "> 99,9 %"),
        (1.0, "100 %", "100 %"),
    ],
)
def test_a_share_that_is_not_zero_never_reads_as_zero(
    share: float | None, english: str, german: str
) -> None:
    for language, text in (("en", english), ("de", german)):
        with translation.override(language):
            assert numbers.percent(share) == text


@pytest.mark.parametrize(
    ("text", "english", "german"),
    [
        (lambda: numbers.number(48_211), "48,211", "48.211"),
        (lambda: numbers.number(-48_211), "-48,211", "-48.211"),
        (lambda: numbers.decimal(1_204.55), "1,204.5", "1.204,5"),
        (lambda: numbers.decimal(0.04), "0.0", "0,0"),
        (lambda: numbers.at_least(10_000, 10_000), "10,000", "10.000"),
        (lambda: numbers.at_least(10_001, 10_000), "10,000+", "10.000+"),
        (lambda: numbers.about(440), "≈ 440", "≈ 440"),
        (lambda: numbers.about(206_400), "≈ 206 K", "≈ 206 Tsd."),
        (lambda: numbers.about(4_720_000), "≈ 4.7 M", "≈ 4,7 Mio."),
        (lambda: numbers.duration(20_250), "20.2 s", "20,2 s"),
        (lambda: numbers.duration(59_990), "1 m 00 s", "1 min 00 s"),
        (lambda: numbers.run_time(0.00158), "2 ms", "2 ms"),
        (lambda: numbers.run_time(None), "–", "–"),
        (lambda: numbers.span(-3), "0 s", "0 s"),
        (lambda: numbers.megabytes(1_204 * 2**20), "1,204 MB", "1.204 MB"),
        (lambda: numbers.rounded(0.25), "0.25", "0,25"),
        (lambda: numbers.rounded(30.0), "30", "30"),
        (
            lambda: numbers.done_text(30, 1_200),
            "30 of 1,200 (2 %)",
            "30 von 1.200 (2 %)",
        ),
        (lambda: numbers.done_text(30, None), "30", "30"),
        (lambda: numbers.span(12_345 * 86_400), "12,345 d 0 h", "12.345 d 0 h"),
    ],
)
def test_a_number_in_both_languages(text: object, english: str, german: str) -> None:
    for language, wanted in (("en", english), ("de", german)):
        with translation.override(language):
            assert text() == wanted  # type: ignore[operator]
