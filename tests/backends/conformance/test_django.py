"""Each of Django's tests of its Tasks framework holds for our backend, or is listed."""

from __future__ import annotations

import importlib
import sys
import unittest
from collections.abc import Iterator

import pytest

from tests.backends.conformance import source

FILES = ("test_tasks", "test_dummy_backend", "test_immediate_backend")
CUSTOM = "test_custom_backend"

IMMEDIATE = "test_immediate_backend ImmediateBackendTestCase"
IN_A_LOOP = "it calls sync methods in an event loop, which a database forbids"
IN_MEMORY = (
    "it changes the result in the memory of the backend; ours is in the database"
)
CANNOT = {
    "test_tasks TaskTestCase test_enqueue_task_async": IN_A_LOOP,
    "test_tasks TaskTestCase test_refresh_result": IN_A_LOOP,
    "test_dummy_backend DummyBackendTestCase test_enqueue_task_async": IN_A_LOOP,
    f"{IMMEDIATE} test_cannot_get_result": "our results can be had",
    f"{IMMEDIATE} test_cannot_refresh_result": "our results can be had",
    f"{IMMEDIATE} test_cannot_pass_run_after": "our tasks can be put off",
    "test_dummy_backend DummyBackendTestCase test_refresh_result": IN_MEMORY,
    "test_dummy_backend DummyBackendTestCase test_refresh_result_async": IN_MEMORY,
    f"{CUSTOM} CustomBackendTestCase test_no_enqueue": "ours has an enqueue",
    f"{CUSTOM} CustomBackendTestCase test_backend_does_not_support_priority": (
        "ours has priorities"
    ),
}


def _found() -> Iterator[tuple[str, type[unittest.TestCase]]]:
    """Every test, with its name."""
    folder = str(source.tests())
    sys.path.insert(0, folder)
    try:
        for name in (*FILES, CUSTOM):
            module = importlib.import_module(f"tasks.{name}")
            for case in vars(module).values():
                if isinstance(case, type) and case.__module__ == module.__name__:
                    yield from _methods(name, case)
    finally:
        sys.path.remove(folder)


def _methods(module: str, case: type) -> Iterator[tuple[str, type[unittest.TestCase]]]:
    if issubclass(case, unittest.TestCase):
        for method in unittest.TestLoader().getTestCaseNames(case):
            yield f"{module} {case.__name__} {method}", case


TESTS = dict(_found())


def run(name: str) -> unittest.TestResult:
    """Run one of Django's tests; its module must be at hand where tasks are looked
    up by their path."""
    result = unittest.TestResult()
    unittest.TestSuite([TESTS[name](name.split()[-1])]).run(result)
    return result


@pytest.mark.parametrize("name", [name for name in TESTS if name not in CANNOT])
@pytest.mark.django_db
def test_what_django_asks_of_a_backend_holds(name: str) -> None:
    result = run(name)
    assert [text for _, text in [*result.failures, *result.errors]] == []
    assert result.testsRun == 1
    assert not result.skipped


@pytest.mark.parametrize("name", CANNOT)
@pytest.mark.django_db
def test_no_exception_is_kept_in_vain(name: str) -> None:
    result = run(name)
    assert result.failures or result.errors
