"""How texts spell a value: in any case, composed or not, escaped or not; as a pattern
that Python and PostgreSQL understand alike, whatever the collation."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, quote_plus

LONGEST_STRETCH: Final = 6  # characters whose divisions overlap
LAST_CASED: Final = 0x1E943  # the last character that has another case

Encode = Callable[[str], str]


def in_json(text: str) -> str:
    """As the text of jsonb has it."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


# Each spells a text character by character.
ENCODINGS: Final[tuple[Encode, ...]] = (
    str,
    lambda text: repr(text)[1:-1],
    lambda text: repr(f'"{text}')[2:-1],  # with its quotes escaped
    lambda text: json.dumps(text)[1:-1],
    in_json,
    quote,
    lambda text: quote(text, safe=""),
    quote_plus,
)


def pattern_of(value: str) -> str:
    """The pattern of what a text has for this value; to be used without regard to the
    case of ASCII, which a collation cannot change."""
    return _any(_spelled(value, encode) for encode in ENCODINGS)


def pattern_in_json(value: str) -> str:
    """The same for a text that may be JSON, as jsonb writes it."""
    twice = [lambda text, encode=encode: in_json(encode(text)) for encode in ENCODINGS]
    return _any(_spelled(value, encode) for encode in (*ENCODINGS, *twice))


def _any(choices: Iterable[str]) -> str:
    longest_first = sorted(set(choices), key=lambda one: (-len(one), one))
    one = longest_first[0]
    return one if len(longest_first) == 1 else f"(?:{'|'.join(longest_first)})"


def _spelled(value: str, encode: Encode) -> str:
    composed = normalize("NFC", value)
    stretches = list(_stretches(composed.casefold()))
    spelled = "".join(
        _any("".join(_choice(unit, encode) for unit in units) for units in ways)
        for ways in map(_divisions, stretches)
    )
    if max(map(len, stretches), default=0) < LONGEST_STRETCH:
        return spelled
    # One was cut, perhaps in the middle of a character: as it is written, too.
    return _any([spelled, "".join(_choice(c.casefold(), encode) for c in composed)])


def _stretches(folded: str) -> Iterator[str]:
    """The text in parts that are divided in one way or in several: mostly its
    characters, but ss is another spelling of ß, and sss of sß and of ßs."""
    at = 0
    while at < len(folded):
        end = start = at
        while start <= end < at + LONGEST_STRETCH:
            end = max(
                [end, *(start + n - 1 for n in (2, 3) if _is_one(folded, start, n))]
            )
            start += 1
        yield folded[at : end + 1]
        at = end + 1


def _divisions(text: str) -> list[list[str]]:
    """All ways to divide it into parts that have other spellings as a whole."""
    if not text:
        return [[]]
    sizes = [1, *(n for n in (2, 3) if _is_one(text, 0, n))]
    return [[text[:n], *others] for n in sizes for others in _divisions(text[n:])]


def _is_one(folded: str, at: int, length: int) -> bool:
    part = folded[at : at + length]
    return len(part) == length and part in _same_folding()


def _choice(unit: str, encode: Encode) -> str:
    same = {unit, *_same_folding().get(unit, ())}
    if unit.isascii() and len(same) == 1:  # its case is the caller's
        return re.escape(encode(unit))
    same |= {normalize("NFD", one) for one in same}
    return _any(re.escape(encode(one)) for one in same)


@cache
def _same_folding() -> dict[str, list[str]]:
    """Of each folding the characters outside of ASCII that have it."""
    same: dict[str, list[str]] = defaultdict(list)
    for code in range(0x80, LAST_CASED + 1):
        same[normalize("NFC", chr(code)).casefold()].append(chr(code))
    return dict(same)
