"""The weight of a job in a rate, instead of 1: ``Rate(weight="tokens")``."""

from __future__ import annotations

from collections.abc import Mapping
from json import dumps
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain.policy import Policy, whole
from django_jobqueue.domain.rates import Rate
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.exceptions import InvalidArguments

DEFAULT: Final = 1  # of a job that says nothing, in a rate that counts weights


def weighing(policy: Policy) -> tuple[Rate, ...]:
    """The rates of these jobs that count weights: of the type, and of each key."""
    return tuple(rate for rate in _rates(policy) if rate is not None and rate.weight)


def rule_json(declaration: Declaration) -> str | None:
    """How the database finds what a job of this type weighs, as JSON text; None if no
    rate counts it."""
    if not weighing(declaration.policy):
        return None
    of_type, of_key = _rates(declaration.policy)
    name = _parameter(declaration.policy)
    default = declaration.parameters.defaults.get(name) if name else None
    is_weight = default is not None and whole(1)(default) is None
    return dumps(
        {
            "by": name,
            "default": default if is_weight else DEFAULT,
            "of_type": of_type is not None and bool(of_type.weight),
            "of_key": of_key is not None and bool(of_key.weight),
        }
    )


def check(declaration: Declaration, where: str) -> None:
    """Raises ImproperlyConfigured unless the handler has the parameter that says what a
    job weighs."""
    policy, parameters = declaration.policy, declaration.parameters
    names = {rate.weight for rate in weighing(policy) if rate.weight is not True}
    if len(names) > 1:
        raise ImproperlyConfigured(
            f"@job on {where}: rate and per_key count the weights "
            f"{' and '.join(sorted(map(repr, names)))}. A job has one weight."
        )
    name = _parameter(policy)
    if name is None:
        return
    if not parameters.open_ended and name not in parameters.names:
        raise ImproperlyConfigured(
            f"@job on {where}: weight names {name!r}, which is no parameter."
            f"{parameters.near(name)}"
        )
    try:
        check_weight(policy, None, parameters.defaults)
    except InvalidArguments as error:
        raise ImproperlyConfigured(f"@job on {where}: the default of {error}") from None


def check_weight(policy: Policy, given: int | None, data: Mapping[str, Any]) -> None:
    """Raises InvalidArguments for a job that weighs what no rate could let start.

    :param given: by ``using(weight=…)``; None is what the data say."""
    name = _parameter(policy)
    what, weight = "weight", given
    if given is None and name is not None and data.get(name) is not None:
        what, weight = name, data[name]
        if problem := whole(1)(weight):
            raise InvalidArguments(
                f"{what} is what the job counts with in its rate, so it {problem}"
            )
    for rate in weighing(policy):
        if weight is not None and weight > rate.size:
            raise InvalidArguments(
                f"{what} must be at most {rate.size:,}, the burst of the rate {rate}, "
                f"not {weight:,}: the job could never start."
            )


def _rates(policy: Policy) -> tuple[Rate | None, Rate | None]:
    return policy.rate, None if policy.per_key is None else policy.per_key.rate


def _parameter(policy: Policy) -> str | None:
    """The name of the parameter that says what a job weighs."""
    for rate in weighing(policy):
        if isinstance(rate.weight, str):
            return rate.weight
    return None
