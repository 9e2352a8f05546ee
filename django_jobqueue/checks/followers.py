"""System checks of followers: ``on_success``, ``on_failure`` and ``on_complete``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.domain import followers
from django_jobqueue.domain.registry import registry

TAG = "jobqueue"


@register(TAG)
def check_followers(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E011: no job type follows, over others, on itself: that would never end."""
    named = {
        declaration.name: followers.job_types(
            followers.followers_of(declaration.policy)
        )
        or []
        for declaration in registry
    }
    reported: set[str] = set()
    for start in sorted(named):
        cycle = _cycle(named, start)
        if cycle and start not in reported:
            reported.update(cycle)
            yield Error(
                f"These job types follow each other in a cycle: "
                f"{' → '.join([*cycle, start])}.",
                hint="Remove a follower of one of them, or enqueue it in a handler "
                "under a condition.",
                id="jobqueue.E011",
            )


def _cycle(named: Mapping[str, Sequence[str]], start: str) -> list[str]:
    """The shortest way over followers from a job type back to it; empty if there is
    none."""
    ways, seen = [[start]], {start}
    for way in ways:
        for name in named.get(way[-1], ()):
            if name == start:
                return way
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []


@register(TAG)
def check_followers_exist(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W012: the followers that handlers name have handlers here, too."""
    for whose, option, name in _named():
        if registry.get(name) is None:
            yield _unknown(whose, option, name)


@register(TAG)
def check_followers_fit(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E012: a finished job can fill the parameters of its followers. ``@job`` cannot
    know those that are declared later."""
    for whose, option, name in _named():
        declaration = registry.get(name)
        if declaration and (problem := followers.call_problem(declaration.parameters)):
            yield Error(
                f"{option} of {whose!r} {problem}",
                hint="Give its other parameters defaults.",
                id="jobqueue.E012",
            )


def _named() -> Iterator[tuple[str, str, str]]:
    """Each follower that a handler names: whose, by which option, its job type."""
    for declaration in registry:
        by_option = followers.followers_of(declaration.policy)
        for option, named in by_option.items():
            for name in followers.job_types({option: named}) or ():
                yield declaration.name, option, name


def _unknown(whose: str, option: str, name: str) -> CheckMessage:
    others = [near for near in registry.near(name) if near != whose]
    near = " or ".join(map(repr, others))
    return Warning(
        f"{option} of {whose!r} names the job type {name!r}, which has no handler "
        "here.",
        hint=f"Did you mean {near}?"
        if near
        else "Its jobs are refused, unless another project on the same database "
        "declares it; in that case silence this check.",
        id="jobqueue.W012",
    )
