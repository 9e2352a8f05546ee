"""Secrets taken out of what is stored, shown or logged.

By key, for data and results: the usual names of secrets, and the ``sensitive`` ones of
the job type. By value, for messages and tracebacks: what looks like a credential.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from os.path import commonprefix
from typing import Any, Final

MASK: Final = "••••"
SHORTEST_SECRET: Final = 4  # shorter values would mask half of every text
LONGEST_CREDENTIAL: Final = 4_000  # a private key of 4,096 bits has 3,300 characters
# What begins with as many characters of a secret as the greatest of these that is not
# longer is one: there are few sizes to compare, whatever somebody makes secret.
COMPARED: Final = (200, 128, 96, 64, 48, 32, 24, 20, 16, 12, 10, *range(8, 0, -1))

_PLAIN: Final = re.compile(r"[\w .,:;@+/=-]*", re.ASCII)  # the same in a repr

_NAMES: Final = (
    "password|passwd|secret|token|api[-_]?key|authorization|cookie|session|card|cvv"
    "|iban|ssn"
)
_KEYS = re.compile(_NAMES, re.IGNORECASE)
# Nothing is read again for each place where it might begin: who enqueues a megabyte of
# beginnings holds the interpreter for no longer than others do.
_VALUES: Final = (
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        re.DOTALL,
    ),
    re.compile(r"(?<=\bBearer )[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(?<=://)[^\s/:@]*+:[^\s/@]++(?=@)"),  # user:password in a URL
    re.compile(r"(?<=password=)[^\s&;,'\"]+", re.IGNORECASE),
)
# A JSON web token, or a word that begins like one, and is passed over as a whole.
_WEB_TOKEN: Final = re.compile(r"\beyJ[\w-]{5,}+(\.[\w-]{5,}+\.[\w-]*+)?")
_NAMED: Final = re.compile(  # token='…', and "token": "…" as in a dict or in JSON
    rf"""((?:{_NAMES})[\w-]{{0,40}}(?:\s*=|['"]\s*:)\s*)"""
    r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""",
    re.IGNORECASE,
)
_CARD: Final = re.compile(
    r"""\b(?=[2-6])(?:
          \d{13,19}
        | \d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?
        | \d{4}([ -])\d{6}\2\d{4,5}
    )\b""",
    re.VERBOSE,
)


def is_secret(key: str, sensitive: Collection[str] = ()) -> bool:
    """True if what is kept under this key is masked; ``sensitive`` is in lower case."""
    return key.lower() in sensitive or _KEYS.search(key) is not None


def mask_data(value: Any, sensitive: Iterable[str] = ()) -> Any:
    """The same JSON value with ``MASK`` for what is kept under a secret's key."""
    return _mask(value, frozenset(str(name).lower() for name in sensitive))


def mask_json(
    value: Any, sensitive: Iterable[str] = (), secrets: Iterable[str] = ()
) -> Any:
    """The same JSON value without its secrets: by key, by what texts look like, and
    ``secrets``, under whatever key they stand."""
    return _texts_masked(mask_data(value, sensitive), _secrets(secrets))


class Masking:
    """The same, value by value: for who does not look at all of them."""

    def __init__(
        self, sensitive: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> None:
        self._sensitive = frozenset(str(name).lower() for name in sensitive)
        self._secrets = _secrets(secrets)
        self.has_masked = False  # of what was asked for until now

    def items(self, value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """The keys and items of an object; of a secret one ``MASK``."""
        for key, item in value.items():
            shown = mask_text(key, self._secrets) if self._secrets else key
            hidden = is_secret(key, self._sensitive)
            self.has_masked = self.has_masked or hidden or shown != key
            yield shown, MASK if hidden else item

    def scalar(self, value: Any, longest: int) -> Any:
        """A value that has no values inside; of a text the first characters."""
        if type(value) is not str:
            shown = _scalar_masked(value, self._secrets)
            self.has_masked = self.has_masked or shown is not value
            return shown
        shown = mask_start(value, longest, self._secrets)
        self.has_masked = self.has_masked or not value.startswith(shown)
        return shown


def mask_at(path: Iterable[str], value: Any, sensitive: Iterable[str] = ()) -> Any:
    """The value that stands at this path of some data, as it may be shown."""
    keys = list(path)
    for key in reversed(keys):
        value = {key: value}
    masked = mask_json(value, sensitive)
    for key in keys:
        masked = masked[key] if isinstance(masked, dict) else masked
    return masked


class Secrets(frozenset[str]):
    """Texts that must not be shown, found in a time that grows neither with their
    number nor with their length."""

    @cached_property
    def longest(self) -> int:
        """Characters of the longest one, as a text may show it."""
        return max(self._lengths.values(), default=0)

    def mask(self, text: str) -> str:
        """The same text with ``MASK`` for each of them, and for several that touch."""
        parts, done = [], 0
        for start, end in self._spans(text):
            parts += [text[done:start], MASK]
            done = end
        return "".join(parts) + text[done:]

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where they are, in order and apart."""
        starts = self._starts
        size = min(map(len, starts), default=len(text) + 1)
        begin = end = -1
        for at in range(len(text) - size + 1):
            if text[at : at + size] not in starts:
                continue
            length = self._length(text, at)
            if at > end and length:
                if end > begin:
                    yield begin, end
                begin = at
            end = max(end, min(at + length, len(text))) if length else end
        if end > begin:
            yield begin, end

    def _length(self, text: str, at: int) -> int:
        """How long the longest one is that begins here; 0 if none does."""
        for size in self._sizes:
            if length := self._lengths.get(text[at : at + size]):
                return length
        return 0

    @cached_property
    def _starts(self) -> set[str]:
        """Their first characters, which tell where it is worth looking closer."""
        size = min(SHORTEST_SECRET, *self._sizes) if self._sizes else 0
        return {beginning[:size] for beginning in self._lengths}

    @cached_property
    def _sizes(self) -> list[int]:
        """Of what is compared, greatest first: who is found by it is the longest."""
        return sorted({len(beginning) for beginning in self._lengths}, reverse=True)

    @cached_property
    def _lengths(self) -> dict[str, int]:
        """How long they are, by what is compared of them: as they are, as in a repr, as
        in JSON."""
        spellings = set(self)
        for secret in self:
            if not _PLAIN.fullmatch(secret):
                spellings.add(repr(secret)[1:-1])
                spellings.add(json.dumps(secret)[1:-1])
                spellings.add(json.dumps(secret, ensure_ascii=False)[1:-1])
        by_length = sorted(spellings - {""}, key=len)
        return {_compared(spelling): len(spelling) for spelling in by_length}


def _compared(spelling: str) -> str:
    return spelling[: next(size for size in COMPARED if size <= len(spelling))]


def mask_text(text: str, secrets: Iterable[str] = ()) -> str:
    """The same text with ``MASK`` for ``secrets`` and whatever looks like one."""
    text = _secrets(secrets).mask(text)
    for pattern in _VALUES:
        text = pattern.sub(MASK, text)
    text = _WEB_TOKEN.sub(lambda match: MASK if match[1] else match[0], text)
    return _mask_cards(_NAMED.sub(rf"\1{MASK}", text))


def mask_start(text: str, length: int, secrets: Collection[str] = ()) -> str:
    """``mask_text`` of the first ``length`` characters; no secret is cut in two."""
    margin = _margin(secrets)
    seen = text[: length + margin]
    masked = mask_text(seen, secrets)
    if len(seen) < len(text):  # what was left alone at the cut may be half a secret
        doubtful = commonprefix([masked[: -margin - 1 : -1], seen[: -margin - 1 : -1]])
        masked = masked[: len(masked) - len(doubtful)]
    return masked[:length]


def mask_end(text: str, length: int, secrets: Collection[str] = ()) -> str:
    """``mask_text`` of the last ``length`` characters; no secret is cut in two."""
    margin = _margin(secrets)
    seen = text[-length - margin :]
    masked = mask_text(seen, secrets)
    if len(seen) < len(text):
        masked = masked[len(commonprefix([masked[:margin], seen[:margin]])) :]
    return masked[-length:]


def secrets_in(value: Any, sensitive: Iterable[str]) -> Secrets:
    """The texts kept under ``sensitive`` keys, to be masked wherever they turn up."""
    secrets: set[str] = set()
    names = frozenset(str(name).lower() for name in sensitive)
    if names:
        _collect(value, names, secrets, secret=False)
    return Secrets(secrets)


def _mask(value: Any, sensitive: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK if is_secret(key, sensitive) else _mask(item, sensitive)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mask(item, sensitive) for item in value]
    return value


def _texts_masked(value: Any, secrets: Secrets) -> Any:
    if type(value) is str:
        return mask_text(value, secrets)
    if isinstance(value, dict):
        return {
            mask_text(key, secrets) if secrets else key: _texts_masked(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_texts_masked(item, secrets) for item in value]
    return _scalar_masked(value, secrets)


def _scalar_masked(value: Any, secrets: Secrets) -> Any:
    if secrets and not isinstance(value, bool | None):
        return MASK if str(value) in secrets else value
    return value


def _collect(
    value: Any, sensitive: frozenset[str], secrets: set[str], *, secret: bool
) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            inside = secret or key.lower() in sensitive
            _collect(item, sensitive, secrets, secret=inside)
    elif isinstance(value, list):
        for item in value:
            _collect(item, sensitive, secrets, secret=secret)
    elif secret and not isinstance(value, bool | None):
        text = str(value)
        if len(text) >= SHORTEST_SECRET:
            secrets.add(text)


def _secrets(secrets: Iterable[str]) -> Secrets:
    return secrets if isinstance(secrets, Secrets) else Secrets(secrets)


def _margin(secrets: Iterable[str]) -> int:
    """How far to look beyond a cut, so that no secret is half inside."""
    return max(LONGEST_CREDENTIAL, _secrets(secrets).longest)


def _mask_cards(text: str) -> str:
    """A number before a card may look like its beginning, hence the second look."""
    parts, done, start = [], 0, 0
    while match := _CARD.search(text, start):
        start = match.start() + 1
        if _is_card(match[0]):
            parts += [text[done : match.start()], MASK]
            done = start = match.end()
    return "".join(parts) + text[done:]


def _is_card(number: str) -> bool:
    """True if it passes the check of card numbers (ISO/IEC 7812-1, Luhn)."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = (d * 2 - 9 * (d > 4) for d in digits[-2::-2])
    total = sum(digits[-1::-2]) + sum(doubled)
    return total % 10 == 0
