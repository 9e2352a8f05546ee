"""Options as they are written elsewhere than in ``using``, for messages."""

from __future__ import annotations

import re
from typing import Final

# using(…) with what is in its parentheses, which may be a call.
_USING: Final = re.compile(r"\busing\(((?:[^()]|\([^()]*\))*)\)(\.enqueue\(…\))?")
_FLAGS: Final = ("run_after", "expires_at", "priority", "queue", "id", "on_duplicate")
# Not in quotes, where it may be the name of a parameter.
_OPTION: Final = re.compile(rf"(?<!['\w.-])({'|'.join(_FLAGS)})(?:=(?:'(\w+)'|(…)))")
_NAME: Final = re.compile(
    rf"^(?:{'|'.join(_FLAGS)})(?= )"
    r"|(?<!['\w.-])(?:run_after|expires_at|on_duplicate)(?!['\w=])"
)


def as_keywords(text: str) -> str:
    """This message for who calls ``enqueue`` with the name of a job type, where options
    are keywords: ``using(queue=…)`` is ``queue=…``."""
    return _USING.sub(r"\1", text)


def as_flags(text: str) -> str:
    """This message for who enqueues at the command line: ``queue=…`` is ``--queue``,
    and ``on_duplicate='return'`` is ``--on-duplicate return``."""
    text = _NAME.sub(lambda match: _flag(match[0]), as_keywords(text))
    return _OPTION.sub(lambda match: _flag(match[1], match[2]), text)


def _flag(name: str, value: str | None = None) -> str:
    return " ".join(filter(None, (f"--{name.replace('_', '-')}", value)))
