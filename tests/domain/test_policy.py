"""The options of ``@job``: each mistake is refused with a sentence that says which."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import timedelta
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_jobqueue import InvalidArguments, RetryRule, Snooze
from django_jobqueue.domain import unique_keys
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.option_checks import to_retry
from django_jobqueue.domain.policy import UNSET, Policy, priority_problem, queue_problem
from django_jobqueue.domain.retry_rules import ExceptionRule
from django_jobqueue.domain.states import Delivery
from django_jobqueue.retries import exponential, fixed, quartic
from tests.support.tables import differing, refusal

WHERE = "shop.jobs.send_receipt"
LONG = "q" * 101
HUGE = (math.inf, 1e300, 10**400, timedelta.max)
POLICIES = "exponential, quartic, decorrelated, fixed, immediate, rickover"

DICT = (
    "must be a dict of exception classes and rules, such as {OSError: 'fixed', "
    "KeyError: False}"
)
ARGUMENTS = "has wrong arguments:"
FUNCTION = "must be a function of (attempt) or of (attempt, exception, job)"


def two(attempt: int, exception: BaseException) -> float:
    return 5


def without_attempt() -> float:
    return 5


async def asynchronous(attempt: int) -> float:
    return 5


def refused(**options: Any) -> str:
    """Why these options are refused, without the name of the function."""
    said = refusal(ImproperlyConfigured, policy_of, WHERE, options)
    start, _, problem = said.partition(": ")
    assert start == f"@job on {WHERE}"
    return problem


RULE = "has a key that is no exception class"
FOLLOWER = "must be a handler, or the name of a job type, or a lis"
NAMES = "must be a tuple of names of parameters or keys, not"
CAPTURE = "must be a tuple out of 'language', 'time_zone', 'tenant', not"
NEVER = "cannot have a rule for django_jobqueue.exceptions"
BY_WORD = "must have no space, comma or control character"
NUMBER = "must be a whole number"
DURATION = "must be a timedelta or a number of seconds, not"
BACKOFF = "must be a policy's name, a wait, or a function of the attempt"
MEANT = "Did you mean 'exponential'?"
NAMED = f"must be one of {POLICIES}, not 'expnential'. {MEANT}"
UNIQUE = "must be True, or a tuple of names of parameters, not"
PATHS = "must be a tuple of dotted paths or callables, not"
UNTIL = "must be 'finished', 'started' or 'forever', not 'finish'. Did you mean 'fin"
EXAMPLE = "Write {SomeError: True, Exception: False} to retry nothing else."
SECONDS = "Write RetryRule(backoff=5) for seconds, or RetryRule(max_attempts=5)."

NO_ATTEMPT, NO_WAIT = RetryRule(max_attempts=0), RetryRule(backoff=-1)

WRONG: list[tuple[str, Any, str]] = [
    ("queue", "", "must be a name, not ''."),
    ("queue", None, "must be a name, not None."),
    ("queue", LONG, "must have at most 100 characters; 'qqqqqqqqqqqqqqqqqqqq'… has"),
    *(("queue", text, f"{BY_WORD}: {text!r}") for text in ("a,b", "a b", "a\x00b")),
    ("queue", "a\u202eb", BY_WORD),
    ("priority", 101, f"{NUMBER} from -100 to 100 (greater is sooner)"),
    *(("priority", x, f"{NUMBER} from -100 to 100") for x in (-101, 1.0, True, None)),
    *(
        ("max_attempts", x, f"{NUMBER} of at least 1, not {x!r}.")
        for x in (0, -1, 2.5, "5", True)
    ),
    ("max_attempts", 2**31, "must be "),
    ("backoff", "expnential", NAMED),
    *(("backoff", value, BACKOFF) for value in (-5, [1, 2])),
    *(("backoff", value, "must be ") for value in (None, UNSET, math.inf)),
    *(("timeout", value, f"{DURATION} {value!r}.") for value in ("5", True)),
    *(
        ("timeout", value, f"must be more than zero, not {value!r}.")
        for value in (0, timedelta(0), -1.5, math.nan)
    ),
    *(("timeout", value, "must be ") for value in HUGE),
    ("delivery", "exactly_once", "must be one of at_least_once, at_most_once, not"),
    ("delivery", [], "must be one of at_least_once, at_most_once, not []."),
    *(("concurrency", x, f"{NUMBER} of at least 0, not {x!r}.") for x in (-1, False)),
    ("concurrency", UNSET, "must be "),
    ("atomic", 1, "must be True or False, not 1."),
    ("expires_in", 0, "must be more than zero, not 0."),
    ("expires_in", "1h", f"{DURATION} '1h'."),
    *(("expires_in", value, "must be ") for value in (math.inf, UNSET)),
    *(("max_crashes", x, f"{NUMBER} of at least 1, not {x!r}.") for x in (0, None)),
    ("retry", 3, f"{DICT}, not 3. Write max_attempts=4 for 3 retries: it counts the"),
    ("retry", True, f"{DICT}, not True. Write max_attempts=4 for 3 retries"),
    ("retry", None, f"{DICT}, not None."),
    ("retry", (OSError,), f"{DICT}, not (<class 'OSError'>,). {EXAMPLE}"),
    ("retry", "", "must be "),
    ("retry", {"OSError": 5}, f"{RULE}: 'OSError'."),
    ("retry", {int: False}, f"{RULE}: <class 'int'>."),
    ("retry", {(): False}, f"{RULE}: ()."),
    ("retry", {OSError(): False}, f"{RULE}: OSError()."),
    ("retry", {(OSError, int): False}, f"{RULE}: (<class 'OSError'>, <class 'int'>)."),
    ("retry", {OSError: 5, (KeyError, OSError): 6}, "of OSError must be a rule, not 5"),
    ("retry", {OSError: False, (KeyError, OSError): True}, "has two rules for OSError"),
    ("retry", {Snooze: False}, f"{NEVER}.Snooze, which is never"),
    ("retry", {InvalidArguments: True}, f"{NEVER}.InvalidArguments, which"),
    ("retry", {OSError: 5}, f"of OSError must be a rule, not 5. {SECONDS}"),
    ("retry", {(OSError, KeyError): "expnential"}, f"of OSError, KeyError {NAMED}"),
    ("retry", {OSError: [1]}, "of OSError must be True, False, a backoff or a RetryRu"),
    ("retry", {OSError: NO_ATTEMPT}, f"of OSError has a max_attempts that {NUMBER}"),
    ("retry", {OSError: NO_WAIT}, f"of OSError has a backoff that {BACKOFF}"),
    ("takes_context", "yes", "must be True or False, not 'yes'."),
    *(("sensitive", value, f"{NAMES} {value!r}") for value in ("token", (1,), None)),
    *(("unique", value, f"{UNIQUE} {value!r}.") for value in (1, (), "a")),
    ("unique_until", "finish", UNTIL),
    ("unique_until", 0, "must be more than zero, not 0. Or write one of 'finished'"),
    ("on_duplicate", "ignore", "must be 'raise', 'return' or 'replace', not 'ignore'."),
    ("debounce", "soon", f"{DURATION} 'soon'."),
    ("debounce_max", -1, "must be more than zero, not -1."),
    ("on_complete", 5, FOLLOWER),
    ("on_complete", "", FOLLOWER),
    ("on_success", ["a", 5], FOLLOWER),
    ("on_failure", ("a", "a b"), "must have no space and no control character: 'a b'"),
    ("capture", ("timezone",), f"{CAPTURE} ('timezone',). Did you mean 'time_zone'?"),
    *(("capture", value, f"{CAPTURE} {value!r}") for value in ("language", None)),
    *(("middleware", value, f"{PATHS} {value!r}.") for value in ("a.b", (1,))),
    *((field.name, object(), "must be ") for field in fields(Policy)),
]


def test_a_wrong_value_is_refused_with_the_option_and_the_reason() -> None:
    def said(option: str, value: Any) -> str:
        return refused(**{option: value})

    rows = [(option, value, f"{option} {problem}") for option, value, problem in WRONG]
    assert differing(rows, said, str.startswith) == []
    assert refused(colour=5) == "there is no option 'colour'."
    assert refused(max_atempts=5) == (
        "there is no option 'max_atempts'. Did you mean 'max_attempts'?"
    )
    for name in ("default", "mail", "a-b_c.d", "prio/1", "müll", "q" * 100):
        assert queue_problem(name) is None
    for priority in (-100, 0, 100):
        assert priority_problem(priority) is None


def test_nothing_is_lost_of_an_option_that_is_a_generator() -> None:
    kept: list[tuple[str, list[Any], Any]] = [
        ("sensitive", ["token"], frozenset({"token"})),
        ("unique", ["order_id"], ("order_id",)),
        ("capture", ["language"], ("language",)),
        ("middleware", ["shop.timed", print], ("shop.timed", print)),
    ]

    def policy(option: str, items: list[Any]) -> Any:
        made = policy_of(WHERE, {option: (item for item in items)})
        return getattr(made, option)

    assert differing(kept, policy) == []
    by = [unique_keys.described(value) for value in (True, ("a", "b"), False)]
    assert by == ["data", "a, b", ""]


def test_a_function_that_is_no_backoff_is_refused() -> None:
    for function, problem in (
        (two, f"{FUNCTION}, and two is not: "),
        (without_attempt, f"{FUNCTION}, and without_attempt is not: too"),
        (partial(two, 1, 2), f"{FUNCTION}, and two is not"),
        (asynchronous, "must not be an async function: asynchronous."),
        (partial(exponential, cap="1h"), f"{ARGUMENTS} '1h' is neither a timedelta"),
        (partial(fixed, waits=5), f"{ARGUMENTS} fixed() got an unexpected keyword"),
    ):
        of_class = refused(retry={OSError: function})
        of_rule = refused(retry={OSError: RetryRule(backoff=function)})
        assert refused(backoff=function).startswith(f"backoff {problem}")
        assert of_class.startswith(f"retry of OSError {problem}")
        assert of_rule.startswith(f"retry of OSError has a backoff that {problem}")


def test_at_most_once_allows_one_attempt_and_no_exceptions_to_retry() -> None:
    for attempts in (None, 2, 5):
        assert refused(delivery="at_most_once", max_attempts=attempts) == (
            "delivery='at_most_once' allows one attempt, so max_attempts must be 1."
        )
    assert refused(delivery="at_most_once", retry={OSError: True}) == (
        "delivery='at_most_once' never retries, so retry has no effect."
    )
    policy = policy_of(WHERE, {"delivery": "at_most_once", "max_attempts": 1})
    assert policy.attempts_allowed == 1
    with override_settings(JOBQUEUE={"MAX_ATTEMPTS": None}):
        policy = policy_of(WHERE, {"delivery": "at_most_once"})
        assert policy.attempts_allowed == 1
    rules = {OSError: RetryRule(max_attempts=6)}
    assert refused(max_attempts=5, retry=rules) == (
        "retry of OSError has max_attempts=6, and jobs of this type have 5; a rule can "
        "only lower that."
    )
    for allowed in (6, None, UNSET):
        assert policy_of(WHERE, {"max_attempts": allowed, "retry": rules}).retry
    twice = RetryRule(max_attempts=2, backoff=5)
    given = {(KeyError, OSError): twice, ValueError: True}
    found = policy_of(WHERE, {"retry": given}).retry  # a tuple is a rule of each class
    assert [[*rule.column.values()] for rule in found] == [
        ["KeyError", True, 2, "fixed(wait=0:00:05)"],
        ["OSError", True, 2, "fixed(wait=0:00:05)"],
        ["ValueError", True, None, None],
    ]


def test_options_are_kept_as_the_engine_uses_them() -> None:
    def mine(attempt: int) -> timedelta:
        return timedelta(seconds=attempt)

    hour, no_keys = timedelta(hours=1), {KeyError: False}
    kept: list[tuple[str, Any, Any]] = [
        *(("backoff", "quartic", quartic), ("timeout", 90, timedelta(seconds=90))),
        ("delivery", "at_least_once", Delivery.AT_LEAST_ONCE),
        ("expires_in", hour, hour),
        ("retry", no_keys, (ExceptionRule(exception=KeyError, is_retried=False),)),
        ("sensitive", ["token", "card"], frozenset({"token", "card"})),
    ]

    def option(name: str, value: Any) -> Any:
        return getattr(policy_of(WHERE, {name: value}), name)

    assert differing(kept, option) == []
    given: Any = (30, 0.5, timedelta(minutes=2), mine, partial(fixed, wait=9))
    waits = [option("backoff", backoff)(7).total_seconds() for backoff in given]
    assert waits == [30, 0.5, 120, 7, 9]


def test_what_is_not_said_is_left_to_the_settings_and_only_that() -> None:
    policy = policy_of(WHERE, {})
    assert policy == Policy()
    assert policy.backoff is exponential
    with override_settings(
        JOBQUEUE={"MAX_ATTEMPTS": 9, "TIMEOUT": 12.5, "MAX_CRASHES": 2}
    ):
        assert policy.attempts_allowed == 9
        assert policy.time_allowed == timedelta(seconds=12.5)
        assert policy.crashes_allowed == 2
    with override_settings(JOBQUEUE={"MAX_ATTEMPTS": None, "TIMEOUT": None}):
        assert policy.attempts_allowed is None
        assert policy.time_allowed is None
    policy = policy_of(WHERE, {"max_attempts": None, "timeout": None, "max_crashes": 7})
    assert policy.attempts_allowed is None
    assert policy.time_allowed is None
    assert policy.crashes_allowed == 7


RULE_VALUES: dict[str, Any] = {"max_attempts": 3, "backoff": 30}


def test_each_argument_of_a_retry_rule_is_kept_and_shown_and_no_other() -> None:
    for name in (field.name for field in fields(RetryRule)):
        assert name in RULE_VALUES, f"add a value of {name} to RULE_VALUES"
        (stated,) = to_retry({OSError: RetryRule(**{name: RULE_VALUES[name]})})
        (left_out,) = to_retry({OSError: RetryRule()})
        assert getattr(stated, name) != getattr(left_out, name), (
            f"to_retry() in domain/option_checks.py drops {name} of RetryRule"
        )
        assert stated.column[name] != left_out.column[name], (
            f"ExceptionRule.column in domain/retry_rules.py leaves {name} out"
        )
    rule: Any = RetryRule
    for wrong in ("max_attempt", "retries", "colour"):
        said = refusal(TypeError, lambda wrong=wrong: rule(**{wrong: 3}))
        assert said.startswith(f"RetryRule has no argument '{wrong}'")
    assert all(field.name in said for field in fields(RetryRule))
