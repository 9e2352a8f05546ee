"""How texts spell a value: in any case, composed or not, escaped or not; as a pattern
that Python and PostgreSQL understand alike, whatever the collation."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import permutations
from typing import Final
from unicodedata import combining, normalize
from urllib.parse import quote, quote_plus

LONGEST_STRETCH: Final = 6  # characters whose divisions overlap
LAST_CASED: Final = 0x1E943  # the last character that has another case
MOST_MARKS: Final = 4  # of a letter, of which each order is tried

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
    letters = map(str.casefold, _letters(composed))
    return _any([spelled, "".join(_choice(letter, encode) for letter in letters)])


def _letters(text: str) -> Iterator[str]:
    """The characters, each with the marks after it."""
    at = 0
    while at < len(text):
        end = at + 1
        while end < len(text) and combining(text[end]):
            end += 1
        yield text[at:end]
        at = end


def _stretches(folded: str) -> Iterator[tuple[str, ...]]:
    """The letters in parts that are divided in one way or in several: mostly one by
    one, but ss is another spelling of ß, and sss of sß and of ßs."""
    letters = tuple(_letters(folded))
    at = 0
    while at < len(letters):
        end = start = at
        while start <= end < at + LONGEST_STRETCH:
            end = max(
                [end, *(start + n - 1 for n in (2, 3) if _is_one(letters, start, n))]
            )
            start += 1
        yield letters[at : end + 1]
        at = end + 1


def _divisions(letters: tuple[str, ...]) -> list[list[str]]:
    """All ways to divide them into parts that have other spellings as a whole."""
    if not letters:
        return [[]]
    sizes = [1, *(n for n in (2, 3) if _is_one(letters, 0, n))]
    return [
        ["".join(letters[:n]), *others]
        for n in sizes
        for others in _divisions(letters[n:])
    ]


def _is_one(letters: tuple[str, ...], at: int, length: int) -> bool:
    part = letters[at : at + length]
    return len(part) == length and "".join(part) in _same_folding()


def _choice(unit: str, encode: Encode) -> str:
    same = {unit, *_same_folding().get(unit, ())}
    if combining(unit[-1]):  # a letter that is not composed with all of its marks
        same |= {one + unit[1:] for one in _same_folding().get(unit[0], ())}
        same.add(unit[0].upper() + unit[1:])
    elif unit.isascii() and len(same) == 1:  # its case is the caller's
        return re.escape(encode(unit))
    return _any(re.escape(encode(text)) for one in same for text in _equal(one))


@cache
def _equal(letter: str) -> frozenset[str]:
    """All that is canonically equal to a letter with its marks: those may be composed
    with it in part, and be in another order."""
    apart = normalize("NFD", letter)
    if len(apart) - 1 > MOST_MARKS:
        return frozenset((letter, apart, normalize("NFC", letter)))
    texts = {letter}
    for order in map("".join, permutations(apart[1:])):
        for end in range(len(order) + 1):
            texts.add(normalize("NFC", apart[0] + order[:end]) + order[end:])
    return frozenset(one for one in texts if normalize("NFD", one) == apart)


@cache
def _same_folding() -> dict[str, list[str]]:
    """Of each folding the characters outside of ASCII that have it."""
    same: dict[str, list[str]] = defaultdict(list)
    for code in range(0x80, LAST_CASED + 1):
        same[normalize("NFC", chr(code)).casefold()].append(chr(code))
    return dict(same)
