"""Options and arguments of Celery's tasks and calls in source code, and ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from django_jobqueue.text.foreign_words import IN_HANDLER, OPTIONS, RAISED

# Options of tasks and calls that foreign_words does not have, or not in a sentence that
# fits here.
ADVICE: Final = {
    **OPTIONS,
    "args": "Give the arguments to enqueue itself",
    "add_to_parent": "Leave it out: there is no tree of jobs",
    "compression": "Leave it out: PostgreSQL compresses large data",
    "exchange": "Leave it out: there is no broker",
    "max_retries": f"{OPTIONS['max_retries']}; None is unlimited in both",
    "name": "Write @job(name=…); by default it is the path without .jobs",
    "priority": "From -100 to 100, and greater is sooner",
    "producer": "Leave it out: there is no broker",
    "queue": "The same: queue=…",
    "result_extended": "Leave it out: the archive has the data",
    "send_events": "Leave it out: the admin shows each attempt",
    "shadow": "Leave it out, or write using(tags=[…])",
    "store_errors_even_if_ignored": "Leave it out: failures are always kept",
    "typing": "Leave it out: arguments are always checked",
    "trail": "Leave it out: there is no tree of jobs",
}
RATE: Final = re.compile(r"(?P<number>[1-9]\d*)(/(?P<per>[smh]))?$")
SECONDS: Final = {"s": 1, "m": 60, "h": 3_600}
# Values that JSON has not, by the function or method that makes them.
NO_JSON: Final = ("date", "datetime", "now", "today", "utcnow", "Decimal", "UUID")
IDS: Final = ("uuid1", "uuid4", "uuid7")


def option_advice(call: ast.Call, handler: str, method: str = "") -> Iterator[str]:
    """Advice for each option of a declaration or a call, as sentences."""
    if method.startswith("delay"):
        return  # its keywords are arguments of the task
    for keyword in call.keywords:
        if keyword.arg is None:
            yield "Look through the options in ** by hand."
            continue
        text = _option(keyword.arg, keyword.value)
        yield f"{keyword.arg}: {sentence(text, handler)}"


def _option(name: str, value: ast.expr) -> str:
    match name, value:
        case "max_retries", ast.Constant(value=int(retries)):
            return _attempts(retries)
        case "max_retries", ast.Constant(value=None):
            return "Write max_attempts=None"
        case "retry_kwargs", ast.Dict(keys=keys, values=values):
            given = zip(keys, values, strict=True)
            texts = [
                _option(key.value, value)
                for key, value in given
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
            return "; ".join(texts) or "Leave it out: it is empty"
        case "countdown", _ if isinstance(value, ast.Constant):
            return f"Write using(run_after=timedelta(seconds={value.value!r}))"
        case "rate_limit", ast.Constant(value=str(text)) if match := RATE.match(text):
            number, per = match["number"], SECONDS[match["per"] or "s"]
            return f"Write rate=Rate({number}, per={per}), for the whole cluster"
    return ADVICE.get(name, "Leave it out: it means nothing here, or is your own")


def _attempts(retries: int) -> str:
    return f"Write max_attempts={retries + 1}: it counts the first attempt, too"


def argument_advice(call: ast.Call, method: str) -> Iterator[str]:
    """The literal arguments that an enqueue refuses, as sentences."""
    for value in _arguments(call, method):
        for node in ast.walk(value):
            text = ast.unparse(node) if isinstance(node, ast.expr) else ""
            match node:
                case ast.Tuple():
                    yield f"{text} is a tuple, which JSON has not: write a list."
                case ast.Set() | ast.SetComp():
                    yield f"{text} is a set, which JSON has not: write a list."
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
                    name in NO_JSON or name in IDS
                ):
                    shorter = f"str({text})" if name in IDS else "a text"
                    yield f"{text} is no value of JSON: write {shorter}."


def _arguments(call: ast.Call, method: str) -> list[ast.expr]:
    """The arguments of the task."""
    if method.startswith("delay"):
        return [*call.args, *(keyword.value for keyword in call.keywords)]
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    skipped = 1 if method == "send_task" else 0
    args = [*call.args[skipped:], *(named[n] for n in ("args", "kwargs") if n in named)]
    inside: list[ast.expr] = []
    for value in args[:2]:
        if isinstance(value, ast.Tuple | ast.List):
            inside += value.elts
        elif isinstance(value, ast.Dict):
            inside += value.values
    return inside


def retry_advice(call: ast.Call) -> str:
    """Advice for ``self.retry(…)``, as sentences."""
    given = {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg is not None}
    after = ""
    if "countdown" in given:
        after = f"after={given['countdown']}"
    elif "eta" in given:
        after = f"after={given['eta']} - timezone.now()"
    error = f" from {given['exc']}" if "exc" in given else ""
    texts = [f"Write raise Retry({after}){error}"]
    if not after:
        texts.append("Without after=…, the job type's backoff decides")
    for name in given.keys() - {"countdown", "eta", "exc"}:
        texts.append(f"{name}: {RAISED.get(name, ADVICE.get(name, 'Leave it out'))}")
    return " ".join(sentence(text) for text in texts)


def request_advice(name: str) -> str:
    """Advice for ``self.request.<name>``, as a sentence."""
    ours = {"id": "task_id", "retries": "retries", "args": "", "kwargs": ""}
    word = ours.get(name, "request")
    text = IN_HANDLER.get(word, "The handler has its arguments by name")
    return sentence(text)


def sentence(text: str, handler: str = "") -> str:
    """This text as a sentence about a handler."""
    return f"{text}.".replace("<handler>", handler or "handler")
