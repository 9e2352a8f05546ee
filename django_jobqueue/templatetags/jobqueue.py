"""What the templates of the job queue's pages need: ``{% load jobqueue %}``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import template
from django.template import Context
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from django_jobqueue.rooms import offered
from django_jobqueue.text import numbers

# Imported in functions below: every process that renders a template imports this file,
# also without the admin.
if TYPE_CHECKING:
    from django_jobqueue.admin.overview.overview_page import Page

EVERY: Final = (5, 10, 30, 60)  # seconds between two looks

register = template.Library()


@register.simple_tag(takes_context=True)
def jq_overview(context: Context) -> Page | None:
    """The figures of the overview; None for a user who may not see them."""
    from django_jobqueue.admin.base import may
    from django_jobqueue.admin.overview.overview_page import page

    request = context["request"]
    return page(request) if may(request, "view_overview") else None


@register.inclusion_tag("admin/jobqueue/state_line.html", takes_context=True)
def jq_state_line(context: Context) -> dict[str, Any]:
    """The worst of what needs attention, in one line; nothing for a user who may not
    see the overview."""
    from django_jobqueue.admin.overview.state_line import state_line

    return {"line": state_line(context["request"])}


@register.simple_block_tag(takes_context=True)
def jq_region(context: Context, content: str) -> str:
    """An element with ``data-jq-region``, which an open page replaces when it changes.

    Its own text, escaped already, is all that is in it.
    """
    from django_jobqueue.admin.regions import marked

    request = getattr(context, "request", None) or context["request"]
    return mark_safe(marked(request, content))


@register.simple_block_tag(takes_context=True)
def jq_changed(context: Context, content: str) -> str:
    """Of what is inside, only the regions that the page shows in another version."""
    from django_jobqueue.admin.regions import changed

    return mark_safe(changed(context["request"]))


@register.filter
def jq_breakable(name: Any) -> str:
    """A name that is broken between its words, where it does not fit a line."""
    from django_jobqueue.admin.parts.display import breakable

    return breakable(str(name))


@register.filter
def jq_linked(text: Any) -> str:
    """The text of an operator, with links to the web and to the tracker."""
    from django_jobqueue.admin.parts.display import shown_text
    from django_jobqueue.admin.parts.linked_text import linked

    return linked(shown_text(str(text)))


@register.filter
def jq_number(value: int) -> str:
    """A whole number as people read it: "48,211"."""
    return numbers.number(value)


@register.simple_tag(takes_context=True)
def jq_parts(context: Context, place: str) -> str:
    """The parts that features add to a page there, by the name of their port."""
    return format_html_join("", "{}", ((part(context),) for part in offered(place)))


@register.inclusion_tag("admin/jobqueue/tabs.html", takes_context=True)
def jq_tabs(context: Context, current: str = "") -> dict[str, Any]:
    """The tabs of the job queue's pages, and the box that jumps to an object."""
    from django_jobqueue.admin.tabs import jump_address, tabs

    request = context["request"]
    return {
        "tabs": [] if context.get("is_popup") else tabs(request, current),
        "jump": jump_address(request),
        "every": EVERY,
    }
