"""How a length of time reads."""

from __future__ import annotations

from django.utils.translation import gettext as _


def span(seconds: float) -> str:
    """A time span in one or two units: "40 s", "12 m", "2 h 10 m", "3 d 4 h"."""
    whole = int(seconds)
    if whole < 60:
        return _("%(s)d s") % {"s": whole}
    if whole < 3_600:
        return _("%(m)d m") % {"m": whole // 60}
    if whole < 86_400:
        return _("%(h)d h %(m)02d m") % {"h": whole // 3_600, "m": whole // 60 % 60}
    return _("%(d)d d %(h)d h") % {"d": whole // 86_400, "h": whole // 3_600 % 24}
