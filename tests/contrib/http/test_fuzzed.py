"""Whatever a stranger sends is answered as the OpenAPI document says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connection
from django.test import override_settings
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from psycopg.pq import TransactionStatus
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from django_jobqueue import enqueue
from django_jobqueue.contrib.http.auth import TokenCaller
from django_jobqueue.contrib.http.callers import identity_of
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob, Worker
from tests.admin import scene
from tests.contrib.http.conftest import ALL, V1
from tests.contrib.http.test_matrix import OPERATIONS

HOST = "http://testserver"
ANY = "fuzzed.any"
QUEUED, ARCHIVED, CLAIMED = uuid4(), uuid4(), uuid4()
WORKER = 2**40  # the id of a remote worker
# What there is, in turns; what is generated is mostly unknown.
PLACES = cycle(
    [
        {"job_type": ANY, "id": f"job_{QUEUED}"},
        {"job_type": ANY, "id": f"job_{ARCHIVED}"},
        {"job_type": ANY},
        {"job_type": ANY, "id": f"job_{CLAIMED}", "worker": WORKER},
        {},
    ]
)
PLAIN = override_settings(
    # In the transaction of a test no job can be waited for.
    JOBQUEUE={"HTTP_REQUIRE_TLS": False, "HTTP_LONG_POLLS": 0}
)
# Not positive_data_acceptance: a body may be valid, and its data fit no handler.
CHECKS = [
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _requests_leave_the_connection_of_the_test_open() -> Iterator[None]:
    """As with Django's test client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@PLAIN
def fuzz(examples: int, modes: Sequence[GenerationMode]) -> None:
    """Send so many requests to each operation, of each mode."""
    JobType.objects.create(name=ANY)  # no handler says which data it takes
    enqueue(ANY, id=QUEUED)
    ArchivedJob.objects.create(id=ARCHIVED, job_type_id=ANY, status="failed")
    token = create_token("fuzz", ALL)
    caller = TokenCaller("fuzz", str(token.row.id), (), (), frozenset())
    owner = {"remote": True, "owner": identity_of(caller), "lease_seconds": 60}
    Worker.objects.create(
        id=WORKER, name="fuzz", pid=0, job_types=[ANY], async_slots=1, **owner
    )
    QueuedJob.objects.create(
        id=CLAIMED, job_type_id=ANY, status="running", worker_id=WORKER, fence=1
    )
    scene.endpoint("shipping", 204, failed=1, answered=2, problem="no route")
    headers = {"Authorization": f"Bearer {token.text}"}
    # Else it tries wrong tokens, and takes ours, which replace them, for accepted.
    config = SchemathesisConfig.from_dict(
        {"base-url": HOST, "generation": {"with-security-parameters": False}}
    )
    schema = schemathesis.openapi.from_wsgi(
        f"{V1}/openapi.json", app=get_wsgi_application(), config=config
    )
    tried, wrong = 0, []
    for result in schema.get_all_operations():
        operation = result.ok()
        tried += 1
        for mode in modes:
            try:
                send(operation, mode, examples, headers)
            except Unsatisfiable:  # there is nothing to make wrong
                assert mode is GenerationMode.NEGATIVE
                assert (len(operation.body), len(operation.query)) == (0, 0)
            except (AssertionError, BaseExceptionGroup) as error:
                wrong.append(str(error))
    assert "\n\n".join(wrong) == ""
    assert tried == len(OPERATIONS)


def send(
    operation: Any, mode: GenerationMode, examples: int, headers: dict[str, str]
) -> None:
    """Send these to one operation. Raises for the first answer that is wrong."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def call(case: Any) -> None:
        if mode is GenerationMode.POSITIVE:
            there = next(PLACES)
            case.path_parameters |= {
                name: value
                for name, value in there.items()
                if name in case.path_parameters
            }
        # What could not be made wrong becomes it by our token, as it sees it.
        is_right = case.meta.phase.data.description == "Positive test case"
        leave_out = [negative_data_rejection] if is_right else []
        answer = case.call_and_validate(
            headers=headers, checks=CHECKS, excluded_checks=leave_out
        )
        assert answer.status_code not in (401, 403), answer.text  # or nothing is tried
        # No statement has failed: all values are checked before.
        status = connection.connection.info.transaction_status
        assert status is TransactionStatus.INTRANS, f"{case} {case.body} {answer.text}"

    call()


@pytest.mark.dear
def test_a_few_requests_to_each_operation() -> None:
    fuzz(1, [GenerationMode.POSITIVE])


@pytest.mark.slow("thousands of requests")
@pytest.mark.timeout(3_600)
def test_many_requests_to_each_operation() -> None:
    fuzz(300, [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
