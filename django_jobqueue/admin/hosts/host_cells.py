"""The state of a host, its plan, and the requests to it, as pages show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from django_jobqueue.admin.parts import display
from django_jobqueue.domain.states import HostState
from django_jobqueue.models import Host
from django_jobqueue.text import numbers, timezones

ENDING: Final = (HostState.STOPPING, HostState.RESTARTING)
LABELS: Final[Mapping[str, Any]] = {
    "processes": gettext_lazy("Processes"),
    "threads": gettext_lazy("Threads"),
    "async_slots": gettext_lazy("Async slots"),
    "queues": gettext_lazy("Queues"),
    "draining": gettext_lazy("Drain"),
    "restart": gettext_lazy("Restart"),
    "stop": gettext_lazy("Stop"),
}


def is_alive(host: Host) -> bool:
    """True if it can hear a request."""
    return host.stopped_at is None and host.lease_until > timezones.now()


def is_drained(host: Host) -> bool:
    """True if it claims nothing, or is asked to."""
    return _object(host.desired).get("draining") is True


def state_of(host: Host) -> Any:
    """The state, and whether there are requests that it has not dealt with yet; a host
    that does not renew its row is lapsed."""
    if host.stopped_at is None and not is_alive(host):
        return display.pill("lapsed", pgettext("worker", "lapsed"))
    style = "draining" if host.state in ENDING else host.state
    state = display.pill(style, display.visible(host.get_state_display()))
    requests = [text for key, text in requests_of(host) if key in host.pending]
    if not requests or not is_alive(host):
        return state
    asked = _("asked: %(what)s") % {"what": ", ".join(requests)}
    return format_html("{} {}", state, display.pill("asked", asked))


def plan_lines(host: Host) -> list[Any]:
    """The processes, and the slots of each."""
    text = ngettext("%(count)s process", "%(count)s processes", host.processes)
    slots = _("%(threads)s threads + %(async_slots)s async slots each") % {
        "threads": numbers.number(host.threads),
        "async_slots": numbers.number(host.async_slots),
    }
    count = text % {"count": numbers.number(host.processes)}
    return [count, display.short(slots)]


def queues_text(queues: Any) -> str:
    """The queues of a plan."""
    if queues is None:
        return _("every queue")
    return display.names(queues if isinstance(queues, list) else [queues])


def requests_of(host: Host) -> list[tuple[str, str]]:
    """All that it was asked for, under the key that the row has."""
    asked = _object(host.desired)
    return [
        (key, _request(key, asked[key], label))
        for key, label in LABELS.items()
        if key in asked
    ]


def _request(key: str, value: Any, label: Any) -> str:
    if key in ("restart", "stop"):
        return str(label)
    if key == "draining":
        return str(label) if value else _("Resume")
    is_number = isinstance(value, int)
    shown = numbers.number(value) if is_number else display.visible(str(value))
    if key == "queues":
        shown = queues_text(value)
    return _("%(label)s: %(value)s") % {"label": label, "value": shown}


def _object(value: Any) -> dict[str, Any]:
    """A JSON object; people may have written anything else by hand."""
    return value if isinstance(value, dict) else {}
