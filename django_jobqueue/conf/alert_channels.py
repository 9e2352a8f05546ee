"""The setting ALERTS: where alerts are sent, and which."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from django_jobqueue.conf.setting_types import Setting, T
from django_jobqueue.text.suggestions import did_you_mean

CONDITIONS: Final = (
    "failure_group",
    "regression",
    "backlog",
    "no_worker",
    "unserved",
    "failing",
    "crashing",
    "old_transaction",
)
SECRET_PREFIX: Final = "whsec_"  # of Standard Webhooks
LONGEST_NAME: Final = 100  # characters
SHORTEST_SECRET: Final = 24  # bytes, as Standard Webhooks has it
LONGEST_SECRET: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelConfig:
    """One entry of ALERTS. What may be secret is left out of its ``repr``."""

    to: str  # mail, webhook, slack, or a dotted path
    name: str  # unique among the entries
    on: frozenset[str]
    addresses: tuple[str, ...] = ()  # of mail; none: those of ADMINS
    url: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class Entries(Setting[T]):
    """Dicts, whose problems are described without any value that may be secret."""

    def accepts(self, value: object) -> bool:
        return self.problem(value) is None

    def from_text(self, text: str) -> Any:
        """JSON, in a variable of the environment. Raises ValueError."""
        return json.loads(text)


class AlertChannels(Entries[tuple[ChannelConfig, ...]]):
    """A list of dicts."""

    described_as = "a list of dicts"

    def __init__(self, help: str) -> None:
        super().__init__((), help)

    def convert(self, value: Any) -> tuple[ChannelConfig, ...]:
        return tuple(_channels(value))

    def problem(self, value: object) -> str | None:
        if not isinstance(value, list | tuple):
            return f"must be {self.described_as}, not a {type(value).__name__}"
        for number, entry in enumerate(value, 1):
            if problem := entry_problem(entry):
                return f"has in its entry {number} {problem}"
        names = [channel.name for channel in _channels(value)]
        for name in names:
            if names.count(name) > 1:
                return f"has several entries with the name {name!r}"
        return None


class OwnUrl(Setting[str | None]):
    """A web address that may hold a secret, and so is never repeated."""

    described_as = "an address with http:// or https://"

    def __init__(self, help: str) -> None:
        super().__init__(None, help, optional=True)

    def accepts(self, value: object) -> bool:
        return url_problem(value) is None

    def problem(self, value: object) -> str | None:
        if value is None or self.accepts(value):
            return None
        return f"must be {self.described_as}"


def entry_problem(entry: object) -> str | None:
    """The reason why this is no entry of ALERTS, in words that follow "has"; else
    None."""
    if not isinstance(entry, dict):
        return f"a {type(entry).__name__}: it must be a dict"
    to = entry.get("to")
    if not isinstance(to, str) or not to:
        return 'no "to": mail, webhook, slack or the dotted path of a callable'
    if to not in _KEYS and "." not in to:
        return (
            f"{to!r} for 'to', which is neither a channel nor a dotted "
            f"path{hint(to, _KEYS)}"
        )
    known = (*_SHARED, *_KEYS.get(to, ()))
    for key in entry:
        if key not in known:
            return f"the key {key!r}, which {to} does not have{hint(key, known)}"
    for key, check in _CHECKS.items():
        if key in entry and (problem := check(entry[key])):
            return f"{problem} for {key!r}"
    missing = [key for key in _NEEDED.get(to, ()) if key not in entry]
    return f"no {missing[0]!r}, which {to} needs" if missing else None


def url_problem(value: object) -> str | None:
    """The reason why nothing can be sent to this address, without the address."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        return "no address"
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return "no address"
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "an address without http:// or https://"
    if " " in value or parts.username or parts.password:
        return "a space or a user in the address"
    return None


def _channels(value: Any) -> Iterator[ChannelConfig]:
    names: list[str] = []
    for entry in value:
        to = entry["to"]
        name = entry.get("name") or _free_name(to, names)
        names.append(name)
        secrets = entry.get("secrets", ())
        yield ChannelConfig(
            to=to,
            name=name,
            on=frozenset(entry.get("on", CONDITIONS)),
            addresses=tuple(entry.get("addresses", ())),
            url=entry.get("url", ""),
            secrets=(secrets,) if isinstance(secrets, str) else tuple(secrets),
        )


def _free_name(to: str, names: list[str]) -> str:
    number = names.count(to) + sum(name.startswith(f"{to} ") for name in names)
    return f"{to} {number + 1}" if number else to


def hint(value: object, known: Iterable[str]) -> str:
    """The likely name, or else the known ones, in brackets."""
    names = list(known)
    meant = did_you_mean(value, names).strip().replace("Did", "did")
    return f" ({meant or 'there are ' + ', '.join(names)})"


def _name_problem(value: object) -> str | None:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return None if len(value) <= LONGEST_NAME else "too long a text"
    return "no printable text"


def _on_problem(value: object) -> str | None:
    if not isinstance(value, list | tuple) or not value:
        return "no list of conditions"
    for name in value:
        if name not in CONDITIONS:
            return f"{name!r}, which is no condition{hint(name, CONDITIONS)},"
    return None


def _addresses_problem(value: object) -> str | None:
    is_list = isinstance(value, list | tuple)
    if is_list and all(isinstance(one, str) and "@" in one for one in value):  # type: ignore[attr-defined]
        return None
    return "no list of mail addresses"


def secrets_problem(value: object) -> str | None:
    """Never names a secret."""
    secrets = [value] if isinstance(value, str) else value
    if not isinstance(secrets, list | tuple):
        return "no list of secrets"
    if not all(map(_is_secret, secrets)):
        return (
            f"a secret that is not {SECRET_PREFIX} and then the base64 of "
            f"{SHORTEST_SECRET} to {LONGEST_SECRET} bytes"
        )
    return None


def _is_secret(value: object) -> bool:
    if not isinstance(value, str) or not value.startswith(SECRET_PREFIX):
        return False
    try:
        length = len(secret_bytes(value))
    except (binascii.Error, ValueError):
        return False
    return SHORTEST_SECRET <= length <= LONGEST_SECRET


def secret_bytes(secret: str) -> bytes:
    """The key behind the prefix. Raises binascii.Error."""
    return base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)


_SHARED: Final = ("to", "name", "on")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "mail": ("addresses",),
    "webhook": ("url", "secrets"),
    "slack": ("url",),
}
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "webhook": ("url", "secrets"),
    "slack": ("url",),
}
_CHECKS: Final[Mapping[str, Callable[[object], str | None]]] = {
    "name": _name_problem,
    "on": _on_problem,
    "addresses": _addresses_problem,
    "url": url_problem,
    "secrets": secrets_problem,
}
