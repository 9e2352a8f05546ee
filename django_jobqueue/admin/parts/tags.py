"""Tags of jobs, as lists and pages show them."""

from __future__ import annotations

from typing import Any, Final

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from django_jobqueue.admin.parts import display
from django_jobqueue.text import numbers

MOST: Final = 3  # in a cell of a list
LONGEST: Final = 40  # characters of one in a list
MOST_LINKS: Final = 50
LONGEST_LINK: Final = 200  # characters; a longer one is shown and leads nowhere


def tags_of(job: Any) -> list[str]:
    """The tags of a job; none where plain SQL wrote what is no list."""
    tags = job.tags if isinstance(job.tags, list) else []
    return [tag for tag in tags if isinstance(tag, str)]


def tags_cell(job: Any) -> list[SafeString]:
    """A line with the first few tags; empty without tags."""
    tags = tags_of(job)
    if not tags:
        return []
    shown = [display.shown_text(tag, LONGEST) for tag in tags[:MOST]]
    if len(tags) > MOST:
        shown.append(f"+{numbers.number(len(tags) - MOST)}")
    pills = ((one,) for one in shown)
    return [format_html_join(" ", '<span class="jq-tag">{}</span>', pills)]


def tags_links(job: Any) -> SafeString:
    """All that are reasonable, each a link to the jobs of the same table that have
    it."""
    address = reverse(f"admin:jobqueue_{job._meta.model_name}_changelist")
    tags = tags_of(job)
    shown = [_link(address, tag) for tag in tags[:MOST_LINKS]]
    if len(tags) > MOST_LINKS:
        shown.append(f"+{numbers.number(len(tags) - MOST_LINKS)}")
    return format_html_join(" ", "{}", ((one,) for one in shown))


def _link(address: str, tag: str) -> Any:
    text = display.shown_text(tag, LONGEST_LINK)
    if len(tag) > LONGEST_LINK:
        return format_html('<span class="jq-tag">{}</span>', text)
    query = urlencode({"q": _term(tag)})
    return format_html('<a class="jq-tag" href="{}?{}">{}</a>', address, query, text)


def _term(tag: str) -> str:
    """The search term that finds it."""
    escaped = tag.replace("\\", "\\\\").replace('"', '\\"')
    return f"tag:{tag}" if tag.isalnum() else f'tag:"{escaped}"'
