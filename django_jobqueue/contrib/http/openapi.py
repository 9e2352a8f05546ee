"""The OpenAPI document: what ninja writes, completed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from django_jobqueue.contrib.http.problems import MEDIA_TYPE, PROBLEMS
from django_jobqueue.contrib.http.schemas import ProblemDocument

SCHEMES: Final = {
    "Tokens": {"type": "http", "scheme": "bearer"},
    "Basic": {"type": "http", "scheme": "basic"},
}
PROBLEM: Final = "ProblemDocument"


def document(made: dict[str, Any]) -> dict[str, Any]:
    """The document, with its problems, its security and no empty parts."""
    components = made["components"]
    components["schemas"][PROBLEM] = ProblemDocument.model_json_schema()
    components["securitySchemes"] = SCHEMES
    made["security"] = [{name: []} for name in SCHEMES]
    if not made.get("servers"):
        made.pop("servers", None)
    for operations in made["paths"].values():
        for operation in operations.values():
            _declare_problems(operation)
            _leave_null_out(operation)
    return made


def _declare_problems(operation: dict[str, Any]) -> None:
    for status, ids in _by_status(operation.pop("x-problems", ())).items():
        operation["responses"][status] = {
            "description": ", ".join(ids),
            "content": {
                MEDIA_TYPE: {"schema": {"$ref": f"#/components/schemas/{PROBLEM}"}}
            },
        }
    operation["responses"] = {
        str(status): response for status, response in operation["responses"].items()
    }


def _leave_null_out(operation: dict[str, Any]) -> None:
    """A body that is not required is left out; it cannot be null."""
    for media_type in operation.get("requestBody", {}).get("content", {}).values():
        choices = media_type["schema"].get("anyOf", ())
        objects = [choice for choice in choices if choice.get("type") != "null"]
        if len(objects) == 1:
            media_type["schema"] = objects[0]


def _by_status(ids: Iterable[str]) -> dict[str, list[str]]:
    of_status: defaultdict[str, list[str]] = defaultdict(list)
    for id in ids:
        of_status[str(PROBLEMS[id][0])].append(id)
    return dict(of_status)
