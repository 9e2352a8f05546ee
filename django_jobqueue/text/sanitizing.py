"""Makes texts from handlers fit to be stored and shown: without secrets, without what
PostgreSQL refuses, in a bounded number of bytes, with hidden characters escaped."""

from __future__ import annotations

import re
from collections.abc import Collection

from django_jobqueue.text.redaction import mask_end, mask_start

# Characters that move the cursor, hide, or turn the text around them: terminal codes,
# NUL, zero-width and bidirectional controls.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069"
    "\ufeff\ufff9-\ufffb]"
)


def text_of(value: object) -> str:
    """``str(value)``, also when that raises."""
    try:
        return str(value)
    except BaseException:  # a __str__ may raise anything
        return "<this cannot be formatted>"


def storable(text: str) -> str:
    """The text with escapes for what is no text to PostgreSQL."""
    return text.replace("\x00", "\\x00").encode("utf-8", "backslashreplace").decode()


def clean(text: str, limit: int, secrets: Collection[str] = ()) -> str:
    """The text without secrets, storable, in at most ``limit`` bytes.

    Of a longer one both ends are kept, and only they are looked at, so that 50 MB of
    text cost nothing.
    """
    start = storable(mask_start(text, limit, secrets)).encode()
    if len(text) <= limit and len(start) <= limit:
        return start.decode()
    end = storable(mask_end(text, limit, secrets)).encode()
    note = f"\n… {len(text):,} characters, cut here …\n".encode()
    half = max((limit - len(note)) // 2, 0)
    shortened = start[:half] + note + end[len(end) - half :]
    return shortened.decode("utf-8", "ignore")


def visible(text: str) -> str:
    """The same text with hidden characters written as escapes."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def is_utf8(value: object) -> bool:
    """True if this is no text, or texts, of bytes that Python could not decode."""
    texts = value if isinstance(value, list | tuple) else [value]
    try:
        for text in texts:
            if isinstance(text, str):
                text.encode()
    except UnicodeEncodeError:
        return False
    return True
