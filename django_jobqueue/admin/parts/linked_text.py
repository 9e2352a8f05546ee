"""Notes and reasons of operators with links: web addresses, and issues of the tracker.

Django's ``urlize`` also makes links of addresses without a scheme and of email
addresses, so that a file name such as ``tasks.net`` becomes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from django_jobqueue.conf import conf
from django_jobqueue.text.redaction import MASK
from django_jobqueue.text.url_templates import filled

REL: Final = "nofollow noopener noreferrer"
LONGEST: Final = 2_000  # characters of an address

_ADDRESS: Final = re.compile(r"\bhttps?://[^\s<>\"'`{}|\\^]+", re.IGNORECASE)
_BRACKETS: Final = {")": "(", "]": "["}

Piece = tuple[str, str]  # what is shown, and where it leads; empty: nowhere


def linked(text: str, limit: int | None = None) -> SafeString:
    """The text, which must be fit to be shown, with its links. Of a longer one so many
    characters are shown; a link that is cut leads where it did."""
    return format_html_join("", "{}", ((_html(*one),) for one in _cut(text, limit)))


def _html(shown: str, url: str) -> SafeString:
    if not url:
        return format_html("{}", shown)
    return format_html('<a href="{}" rel="{}">{}</a>', url, REL, shown)


def _cut(text: str, limit: int | None) -> Iterator[Piece]:
    if limit is None or len(text) <= limit:
        yield from _pieces(text)
        return
    left = limit - 1  # and an ellipsis
    for shown, url in _pieces(text):
        if left > 0:
            yield shown[:left], url
        left -= len(shown)
    yield "…", ""


def _pieces(text: str) -> Iterator[Piece]:
    """The text from its beginning to its end, links and what is between them."""
    done = 0
    for match in _ADDRESS.finditer(text):
        if len(match.group()) > LONGEST:
            continue
        url = _without_punctuation(match.group())
        if _is_address(url):
            yield from _issues(text[done : match.start()])
            yield url, url
            done = match.start() + len(url)
    yield from _issues(text[done:])


def _issues(text: str) -> Iterator[Piece]:
    """A text without addresses, in which issues may be named."""
    done = 0
    for match in _issues_in(text):
        id = next(filter(None, match.groups()), match.group())
        yield text[done : match.start()], ""
        yield match.group(), filled(str(conf.tracker_issue_url), {"id": id})
        done = match.end()
    yield text[done:], ""


def _issues_in(text: str) -> Iterator[re.Match[str]]:
    if conf.tracker_issue_url:
        yield from filter(re.Match.group, conf.tracker_issue_pattern.finditer(text))


def _without_punctuation(url: str) -> str:
    """Without the end of the sentence that the address stands in."""
    end = len(url)
    while end and (
        url[end - 1] in ".,;:!?…*"
        or (url[end - 1] in _BRACKETS and _is_alone(url[:end], url[end - 1]))
    ):
        end -= 1
    return url[:end]


def _is_alone(url: str, closing: str) -> bool:
    """True if the last bracket was opened before the address began."""
    return url.count(closing) > url.count(_BRACKETS[closing])


def _is_address(url: str) -> bool:
    """True if it leads to a host, and nothing of it is masked."""
    host = url.partition("://")[2]
    return MASK not in url and host[:1] not in ("", "/", "?")
