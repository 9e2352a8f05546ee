"""System checks of what follows on other jobs: ``on_complete``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.domain.registry import registry

TAG = "jobqueue"


@register(TAG)
def check_followers(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E011: no job type follows, over others, on itself: that would never end."""
    follower = {d.name: d.policy.on_complete for d in registry if d.policy.on_complete}
    reported: set[str] = set()
    for start in sorted(follower):
        chain = [start]
        while (name := follower.get(chain[-1])) is not None and name not in chain:
            chain.append(name)
        if name == start and start not in reported:
            reported.update(chain)
            yield Error(
                f"These job types follow each other in a cycle: "
                f"{' → '.join([*chain, start])}.",
                hint="Leave out on_complete of one of them, or enqueue there by a "
                "condition of your own.",
                id="jobqueue.E011",
            )


@register(TAG)
def check_followers_exist(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W012: the followers that handlers name have handlers here, too."""
    for declaration in registry:
        name = declaration.policy.on_complete
        if name and registry.get(name) is None:
            others = [near for near in registry.near(name) if near != declaration.name]
            near = " or ".join(map(repr, others))
            yield Warning(
                f"on_complete of {declaration.name!r} names the job type {name!r}, "
                "which has no handler here.",
                hint=f"Did you mean {near}?"
                if near
                else "Its jobs are refused unless another project that shares the "
                "database declares it; silence this check then.",
                id="jobqueue.W012",
            )
