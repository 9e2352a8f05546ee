"""The OpenAPI document: valid, whole, and what the API does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from openapi_spec_validator import OpenAPIV31SpecValidator

from django_jobqueue.contrib.http.problems import PROBLEMS
from tests.contrib.http.conftest import V1, Program, problem
from tests.contrib.http.test_matrix import OPERATIONS


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document as programs get it."""
    response: Any = Client().get(f"{V1}/openapi.json", secure=True)
    assert response["Content-Type"] == "application/json"
    made: dict[str, Any] = response.json()
    return made


@pytest.mark.dear
def test_a_validator_accepts_it(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_it_has_each_operation_and_its_problems(document: dict[str, Any]) -> None:
    operations = {
        f"{method.upper()} {path.removeprefix('/jobqueue')}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert operations.keys() == OPERATIONS.keys()
    named = set()
    for name, operation in operations.items():
        assert operation["summary"], name
        assert len({p["name"] for p in operation["parameters"]}) == len(
            operation["parameters"]
        )
        for status, response in operation["responses"].items():
            is_problem = int(status) >= 400
            (media_type,) = response["content"]
            problem_type = "application/problem+json"
            assert (media_type == problem_type) == is_problem, (name, status)
            if is_problem:
                named |= set(response["description"].split(", "))
    assert named == PROBLEMS.keys() - {"not_found", "method_not_allowed"}


def test_nothing_is_said_twice_and_no_reference_leads_nowhere(
    document: dict[str, Any],
) -> None:
    text = json.dumps(document)
    schemas = document["components"]["schemas"]
    for name in schemas:
        assert f'"#/components/schemas/{name}"' in text, name
    assert text.count('"$ref"') > 20
    assert "$defs" not in text


def test_answers_are_described_by_the_keys_that_they_have(
    document: dict[str, Any],
) -> None:
    schema = document["components"]["schemas"]["EndpointAnswer"]
    assert "class" in schema["properties"]
    assert "answer_class" not in schema["properties"]


def test_a_body_that_is_not_required_is_left_out_and_never_null(
    document: dict[str, Any], billing: Program
) -> None:
    bodies = [
        operation["requestBody"]["content"]["application/json"]["schema"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    ]
    assert all(set(schema) == {"$ref"} for schema in bodies)
    sent = billing.send("POST", "/queues/x/pause", b"null")
    problem(sent, 400, "invalid_request")
    assert billing.send("POST", "/queues/x/pause").status_code == 200
