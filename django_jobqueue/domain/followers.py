"""Followers: the jobs that are enqueued when another job finishes, by its status.

The database enqueues them (``jobqueue_follow``), so that nobody can archive a job
without its followers. Immediate mode follows the same rules here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from django_jobqueue.domain.policy import name_problem
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.exceptions import InvalidArguments

if TYPE_CHECKING:
    from django_jobqueue.domain.arguments import Parameters

# The options that name followers, and the statuses on which each enqueues them. A job
# that expired was wanted and did not run, so it is a failure; a cancelled one was no
# longer wanted, so it is neither.
STATUSES: Final[Mapping[str, tuple[ArchivedStatus, ...]]] = {
    "on_success": (ArchivedStatus.SUCCEEDED,),
    "on_failure": (ArchivedStatus.FAILED, ArchivedStatus.EXPIRED),
    "on_complete": tuple(ArchivedStatus),
}
FOLLOWER_OPTIONS: Final = tuple(STATUSES)
# The parameters of a follower that are filled from the job that it follows.
ARGUMENTS: Final = ("job", "status", "result", "error_class", "error_message")


class Follower(NamedTuple):
    """The job type of a follower, and the options of ``using()`` that its jobs have."""

    job_type: str
    options: str = "{}"  # JSON text, as the column ``followers`` of a job has them

    @property
    def json(self) -> Any:
        """The follower as the columns ``followers`` have it."""
        options = json.loads(self.options)
        return {"job_type": self.job_type, **options} if options else self.job_type

    @property
    def job_types(self) -> Iterator[str]:
        """Its job type, and those of the followers that its options give it."""
        yield self.job_type
        yield from job_types_of(json.loads(self.options).get("followers"))


@runtime_checkable
class CanFollow(Protocol):
    """A handler, with or without options."""

    def as_follower(self) -> Follower:
        """The follower that it is. Raises InvalidArguments for options that followers
        cannot have."""
        ...


Followers = Mapping[str, Sequence[Follower] | None]  # by option


def to_followers(value: Any) -> tuple[Follower, ...] | None:
    """The followers that an option names; None if it says nothing."""
    if value is None:
        return None
    return tuple(dict.fromkeys(_follower(one) for one in _several(value)))


def followers_problem(value: object) -> str | None:
    """Why this names no followers, in words that follow the option."""
    for one in _several(value):
        if isinstance(name := _name(one), str) and name:
            problem = name_problem(name)
        elif isinstance(one, Follower):
            problem = None
        elif isinstance(one, CanFollow) and not isinstance(one, type):
            try:
                one.as_follower()
                problem = None
            except InvalidArguments as error:
                problem = str(error)
        else:
            problem = (
                "must be a handler, or the name of a job type, or a list of them, "
                f"not {one!r}."
            )
        if problem:
            return problem
    return None


def call_problem(parameters: Parameters) -> str | None:
    """Why a handler with these parameters cannot follow, in words that follow the
    option."""
    problem = parameters.problem(dict.fromkeys(arguments_of(parameters)))
    if not problem:
        return None
    *most, last = ARGUMENTS
    return (
        f"must be a handler that needs nothing but {', '.join(most)} and {last}: "
        f"{problem}"
    )


def arguments_of(parameters: Parameters) -> list[str]:
    """The ``ARGUMENTS`` that a handler with these parameters takes."""
    return [
        name for name in ARGUMENTS if parameters.open_ended or name in parameters.names
    ]


def followers_of(options: object) -> Followers:
    """The followers that these options, or this policy, name; None says nothing."""
    return {option: getattr(options, option) for option in FOLLOWER_OPTIONS}


def as_json(followers: Followers) -> dict[str, Any] | None:
    """Followers as the columns ``followers`` have them; None if there are none."""
    by_option = {
        option: [one.json for one in named]
        for option, named in followers.items()
        if named is not None
    }
    return by_option or None


def to_json(followers: Followers) -> str | None:
    """The JSON text of followers; None if there are none."""
    value = as_json(followers)
    return json.dumps(value) if value else None


def job_types(followers: Followers) -> list[str] | None:
    """The job types of these followers and of theirs; None if there are none."""
    named = (one for some in followers.values() for one in some or ())
    return sorted({name for one in named for name in one.job_types}) or None


def job_types_of(followers: object) -> Iterator[str]:
    """The job types that the value of a column ``followers`` names, at any depth."""
    for _option, one in _entries(followers):
        yield from one.job_types


def on_status(followers: object, status: str) -> dict[Follower, str]:
    """The followers of a job with this value of the column ``followers`` which a status
    enqueues, each with the option that named it first."""
    chosen: dict[Follower, str] = {}
    for option, one in _entries(followers):
        if status in STATUSES[option]:
            chosen.setdefault(one, option)
    return chosen


def from_json(entries: Any) -> Any:
    """The followers of a list as ``as_json`` writes it; anything else as it is."""
    if not isinstance(entries, list):
        return entries
    return [_of_entry(entry) or entry for entry in entries]


def described(followers: object) -> list[tuple[str, list[str]]]:
    """Each option in the value of a column ``followers`` with the job types it names,
    for people."""
    by_option: dict[str, list[str]] = {}
    for option, one in _entries(followers):
        by_option.setdefault(option, []).append(one.job_type)
    return list(by_option.items())


def _entries(followers: object) -> Iterator[tuple[str, Follower]]:
    """The followers in the value of a column; plain SQL may have written others."""
    if not isinstance(followers, dict):
        return
    for option in FOLLOWER_OPTIONS:
        entries = followers.get(option)
        for entry in entries if isinstance(entries, list) else ():
            if (one := _of_entry(entry)) is not None:
                yield option, one


def _of_entry(entry: object) -> Follower | None:
    if isinstance(entry, str):
        return Follower(entry)
    if isinstance(entry, dict) and isinstance(entry.get("job_type"), str):
        options = {key: entry[key] for key in entry if key != "job_type"}
        return Follower(entry["job_type"], _text(options))
    return None


def follower_of(job_type: str, options: Mapping[str, Any]) -> Follower:
    """The follower of this job type with these options, which are JSON."""
    return Follower(job_type, _text(options))


def _text(options: Mapping[str, Any]) -> str:
    return json.dumps(options, sort_keys=True, ensure_ascii=False)


def _follower(one: Any) -> Follower:
    if isinstance(one, Follower):
        return one
    return Follower(name) if (name := _name(one)) else one.as_follower()


def _name(one: Any) -> Any:
    """The name of a job type, also as one of Django's tasks of another backend has it,
    such as the one for tests."""
    if isinstance(one, str | CanFollow):
        return one if isinstance(one, str) else None
    return getattr(one, "module_path", None)


def _several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
