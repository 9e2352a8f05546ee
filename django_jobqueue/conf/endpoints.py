"""The setting ENDPOINTS: programs to which jobs are sent, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django_jobqueue.conf.alert_channels import (
    Entries,
    hint,
    secrets_problem,
    url_problem,
)
from django_jobqueue.conf.setting_types import GREATEST

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
LONGEST_TIME: Final = 600.0  # seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One entry of ENDPOINTS. What may be secret is left out of its ``repr``."""

    name: str
    url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)  # the first is the newest
    auth: tuple[str, str] | None = field(default=None, repr=False)  # user, password
    connect_timeout: float = 2.0  # seconds
    read_timeout: float = 6.5  # seconds
    concurrency: int | None = 50  # of each job type; None is unlimited


class Endpoints(Entries[Mapping[str, Endpoint]]):
    """A dict of dicts."""

    described_as = "a dict of dicts"

    def __init__(self, help: str) -> None:
        super().__init__({}, help)

    def convert(self, value: Any) -> Mapping[str, Endpoint]:
        return {name: _endpoint(name, entry) for name, entry in value.items()}

    def problem(self, value: object) -> str | None:
        if not isinstance(value, dict):
            return f"must be {self.described_as}, not a {type(value).__name__}"
        for name, entry in value.items():
            if not isinstance(name, str) or not NAME.fullmatch(name):
                return (
                    f"has the name {name!r}: use up to 100 letters, digits, dots, "
                    "hyphens and underscores"
                )
            if problem := _entry_problem(entry):
                return f"has in {name!r} {problem}"
        return None


def _endpoint(name: str, entry: Mapping[str, Any]) -> Endpoint:
    values = dict(entry)
    values["url"] = values["url"].rstrip("/")
    secrets = values["secrets"]
    values["secrets"] = (secrets,) if isinstance(secrets, str) else tuple(secrets)
    if values.get("auth") is not None:
        values["auth"] = tuple(values["auth"])
    return Endpoint(name=name, **values)


def _entry_problem(entry: object) -> str | None:
    """Why this is no entry, in words that follow "has in 'name'"; else None."""
    if not isinstance(entry, dict):
        return f"a {type(entry).__name__}: it must be a dict"
    for key in entry:
        if key not in _CHECKS:
            return f"the key {key!r}, which endpoints do not have{hint(key, _CHECKS)}"
    if "url" not in entry:
        return 'no "url": the address that jobs are sent to'
    if "secrets" not in entry:
        return 'no "secrets": a list of whsec_…, or [] to send requests unsigned'
    for key, check in _CHECKS.items():
        if key in entry and (problem := check(entry[key])):
            return f"{problem} for {key!r}"
    return None


def _url_problem(value: object) -> str | None:
    if problem := url_problem(value):
        return problem
    if "?" in str(value) or "#" in str(value):
        return "an address with ? or #"
    return None


def _auth_problem(value: object) -> str | None:
    """Never names the password."""
    if value is None:
        return None
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if is_pair and all(isinstance(one, str) and one for one in value):  # type: ignore[attr-defined]
        return None if ":" not in value[0] else "a user with a colon"  # type: ignore[index]
    return "no pair of a user and a password"


def _time_problem(value: object) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and 0 < value <= LONGEST_TIME:  # type: ignore[operator]
        return None
    return f"{value!r}, no number of seconds up to {LONGEST_TIME:g},"


def _concurrency_problem(value: object) -> str | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if value is None or (is_whole and 1 <= value <= GREATEST):  # type: ignore[operator]
        return None
    return f"{value!r}, no whole number of at least 1, and not None,"


_CHECKS: Final[Mapping[str, Callable[[object], str | None]]] = {
    "url": _url_problem,
    "secrets": secrets_problem,
    "auth": _auth_problem,
    "connect_timeout": _time_problem,
    "read_timeout": _time_problem,
    "concurrency": _concurrency_problem,
}
