"""How values read on the screen: ids, times, durations, states, text from jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from django_jobqueue.text import timezones
from django_jobqueue.text.numbers import NOTHING as NOTHING
from django_jobqueue.text.numbers import number, span
from django_jobqueue.text.redaction import mask_text
from django_jobqueue.text.sanitizing import visible as visible
from django_jobqueue.text.timezones import exact as exact

CELL: Final = 120  # characters of a message in a list
DAY: Final = timedelta(days=1)


def names(values: Iterable[object]) -> str:
    """Names in a row."""
    return visible(", ".join(map(str, values)))


def breakable(name: str) -> SafeString:
    """A name that may be continued on the next line after a dot or a dash, and not in
    the middle of a word; it is read from the left, also between words that are not."""
    *parts, last = re.split(r"(?<=[._:-])(?=\w)", visible(name))
    before = format_html_join("", "{}<wbr>", ((part,) for part in parts))
    return format_html("<bdi>{}{}</bdi>", before, last)


def shown_text(text: str, limit: int | None = None) -> str:
    """Text that came from a job, fit to be shown: masked, visible, perhaps cut."""
    shown = visible(mask_text(text))
    if limit is not None and len(shown) > limit:
        return shown[: limit - 1] + "…"
    return shown


def short_id(id: UUID) -> str:
    """Enough of an id to tell jobs apart: its beginning is a time, its end random.
    The search takes it, too."""
    text = str(id)
    return f"{text[:8]}…{text[-6:]}"


def job_name(job: Any) -> str:
    """A job in titles: its type, and its id in short."""
    return f"{visible(str(job.job_type_id))} {short_id(job.pk)}"


def url_of(model: str, key: object) -> str:
    """The address of an object's page; ``model`` is its lower-case name, that of a
    feature with its label."""
    label, _dot, name = model.rpartition(".")
    path = f"admin:{label or 'jobqueue'}_{name}_change"
    address: str = reverse(path, args=[quote(str(key))])
    return address


def link(model: str, key: object, text: object) -> SafeString:
    """A link to an object's page."""
    return format_html('<a href="{}">{}</a>', url_of(model, key), text)


def pill(style: str, text: object) -> SafeString:
    """A state: its word, a colour and a shape."""
    return format_html('<span class="jq-pill jq-{}">{}</span>', style, text)


def lines(parts: Iterable[object]) -> SafeString:
    """Several things, one below the other."""
    return format_html_join("", '<div class="jq-line">{}</div>', ((p,) for p in parts))


def id_cell(id: UUID) -> SafeString:
    """A short id that shows the whole one when pointed at."""
    return format_html(
        '<span class="jq-id" dir="ltr" title="{}">{}</span>', id, short_id(id)
    )


def whole_id(id: UUID, copy: str = "") -> SafeString:
    """All of an id, and a button that copies it; ``copy`` says to whom cannot see."""
    return format_html(
        '<span class="jq-id" dir="ltr">{}</span> <button type="button" class="jq-copy"'
        ' data-jq-copy="{}" aria-label="{}">{}</button>',
        id,
        id,
        copy or _("Copy the id"),
        _("Copy"),
    )


def moment(at: datetime | None, *, clock_first: bool = False) -> SafeString | str:
    """A time as people say it, and by the clock: "2 m ago 14:31:07"; the exact one,
    with its zone, when pointed at.

    More than a day away, and on request, the date and the clock come first, which say
    more by then than "1 d 12 h ago" on every row.
    """
    if at is None:
        return NOTHING
    local = timezones.local(at)
    clock_first = clock_first or abs(timezones.now() - at) >= DAY
    clock = f"{local:%Y-%m-%d %H:%M:%S}" if clock_first else f"{local:%H:%M:%S}"
    parts = (
        format_html('<span dir="ltr">{}</span>', clock),
        format_html("<bdi>{}</bdi>", ago(at)),
    )
    first, second = parts if clock_first else reversed(parts)
    return format_html(
        '<time datetime="{}" title="{}">{} <small>{}</small></time>',
        at.isoformat(),
        exact(at),
        first,
        second,
    )


def exact_moment(at: datetime) -> SafeString:
    """The exact time; how long ago that is, when pointed at."""
    return format_html(
        '<time datetime="{}" title="{}" dir="ltr">{}</time>',
        at.isoformat(),
        ago(at),
        exact(at),
    )


def full_moment(at: datetime | None) -> SafeString | str:
    """The exact time, and how long ago that is."""
    if at is None:
        return NOTHING
    return format_html(
        '<time datetime="{}" dir="ltr">{}</time> <bdi class="jq-quiet">({})</bdi>',
        at.isoformat(),
        exact(at),
        ago(at),
    )


def ago(at: datetime) -> str:
    """How long ago, or in how long."""
    seconds = (timezones.now() - at).total_seconds()
    if seconds < 0:
        return _("in %(span)s") % {"span": span(-seconds)}
    return _("%(span)s ago") % {"span": span(seconds)}


def short(text: str) -> SafeString:
    """Text that stays on one line."""
    return format_html('<bdi class="jq-short">{}</bdi>', text)


def attempts(count: int, limit: int | None) -> str:
    """ "2 / 5"; a limit of None is unlimited."""
    return f"{number(count)} / {'∞' if limit is None else number(limit)}"


def last_part(name: str) -> str:
    """The last part of a dotted name, fit to be shown."""
    return shown_text(name).rpartition(".")[2]


def group_link(fingerprint: UUID, error_class: str, frame: str = "") -> SafeString:
    """A link to a failure group, named for its class, or its place without one."""
    name = last_part(error_class) or visible(frame) or _("failure group")
    return link("failuregroup", fingerprint, name)


def error_cell(error_class: str, message: str) -> list[SafeString]:
    """The last part of a class's name and the start of its message, if there are
    any."""
    if not error_class and not message:
        return []
    name = shown_text(error_class)
    line = shown_text(message.partition("\n")[0], CELL)
    whole = f"{name}: {line}" if name else line
    cell = '<span class="jq-error" title="{}"><b>{}</b> {}</span>'
    return [format_html(cell, whole, last_part(error_class), line)]
