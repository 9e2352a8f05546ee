"""Programs that call the HTTP API of the test site."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client

from django_jobqueue.contrib.http.job_objects import forget_facts
from django_jobqueue.contrib.http.token_operations import create_token
from tests.admin.conftest import anna, log_in, scene

__all__ = ["anna", "log_in", "scene"]  # fixtures

MOUNT = "/jobqueue"
V1 = f"{MOUNT}/v1"
ALL = ("enqueue", "read", "read-data", "operate", "work", "types")


class Program(Client):
    """A program with a token, over TLS; bodies are objects."""

    def __init__(self, text: str = "") -> None:
        super().__init__(raise_request_exception=True)
        self.token = text
        if text:
            self.defaults["HTTP_AUTHORIZATION"] = f"Bearer {text}"

    def send(
        self, method: str, path: str, body: Any = None, **headers: str
    ) -> HttpResponse:
        """Send this body, or these bytes, or none."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.generic(  # type: ignore[return-value]
            method,
            (MOUNT if path.startswith("/v2/") else V1) + path,
            b"" if body is None else data,
            content_type=headers.pop("content_type", "application/json"),
            secure=True,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )


@pytest.fixture(autouse=True)
def _job_types_are_read_again() -> None:
    forget_facts()


@pytest.fixture
def program(db: None) -> Callable[..., Program]:
    """Makes programs with these scopes."""
    made: list[str] = []

    def make(*scopes: str, **options: Any) -> Program:
        made.append(f"program-{len(made)}")
        return Program(create_token(made[-1], scopes or ALL, **options).text)

    return make


@pytest.fixture
def billing(program: Callable[..., Program]) -> Program:
    """A program that may do everything."""
    return program()


def problem(response: HttpResponse, status: int, id: str) -> dict[str, Any]:
    """The problem document of this response, which has to be this one."""
    assert response["Content-Type"] == "application/problem+json", response.content
    document: dict[str, Any] = json.loads(response.content)
    assert (response.status_code, document["id"]) == (status, id), document
    assert document["type"].endswith(f":{id}")
    assert document["status"] == status
    assert response["Cache-Control"] == "no-store"
    return document
