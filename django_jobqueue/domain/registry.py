"""The registry: the handler of each job type, as ``@job`` declared it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Protocol

from asgiref.sync import iscoroutinefunction
from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import Parameters
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.policy import Policy
from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.text.suggestions import near_names

BY_ENDPOINTS: Final = "endpoint"  # the handler of a room, of all types that have one


class AttemptObserver(Protocol):
    """Is called with the outcome of each attempt of a job type."""

    def on_finished(
        self, context: Context, outcome: Outcome, error: BaseException | None
    ) -> None:
        """An attempt of a sync handler ended with this outcome."""

    async def aon_finished(
        self, context: Context, outcome: Outcome, error: BaseException | None
    ) -> None:
        """``on_finished`` for async handlers, in their event loop."""


class Declaration(NamedTuple):
    """A handler as ``@job`` declared it."""

    name: str  # of the job type
    function: Callable[..., Any]
    policy: Policy
    parameters: Parameters
    label: str = ""  # "task" for a task of Django; empty for @job
    observer: AttemptObserver | None = None
    is_remote: bool = False  # other programs claim its jobs: see remote_job
    endpoint: str = ""  # the entry of ENDPOINTS that its jobs are sent to
    endpoint_path: str = ""  # below its address, with {type} and {id}

    @property
    def is_async(self) -> bool:
        """True if the handler is a coroutine function, or marked as one."""
        return iscoroutinefunction(self.function)

    @property
    def path(self) -> str:
        """The path of the handler, for people: ``shop.jobs:send_receipt``."""
        where = f"{self.function.__module__}:{self.function.__qualname__}"
        return f"{self.label} {where}" if self.label else where

    @property
    def description(self) -> str:
        """The first line of the handler's docstring."""
        return (inspect.getdoc(self.function) or "").split("\n", 1)[0]


OWN: Final = "jobqueue."  # job types of the queue itself
BULK: Final = f"{OWN}bulk"  # whose jobs work off bulk operations
OWN_PRIORITY: Final = -50  # of these jobs: after those of the project
LazyDeclaration = Callable[[], Declaration | None]  # None while it cannot be made yet


class Registry:
    """Declarations by the name of their job type."""

    def __init__(self) -> None:
        self._by_name: dict[str, Declaration] = {}
        self._lazy: dict[str, LazyDeclaration] = {}
        self._senders: dict[str, object] = {}

    def add(self, declaration: Declaration) -> None:
        """Declare a handler. Raises ImproperlyConfigured if its name is taken."""
        held = self._by_name.get(declaration.name)
        if held is not None and held.path != declaration.path:
            raise ImproperlyConfigured(
                f"The job type {declaration.name!r} is declared twice, by {held.path} "
                f"and by {declaration.path}. Give one of them another name: "
                "@job(name=…)."
            )
        self._by_name[declaration.name] = declaration

    def add_lazily(self, name: str, make: LazyDeclaration) -> None:
        """Declare the job type by the return value of ``make``, which is called when a
        job type is first looked up."""
        self._lazy[name] = make

    def is_lazy(self, name: str) -> bool:
        """True if the declaration of this job type is not made yet."""
        return name in self._lazy

    def send_as(self, name: str, sender: object) -> None:
        """Make this object the sender of signals about jobs of this type: the handler
        that ``@job`` returned."""
        self._senders[name] = sender

    def sender(self, name: str) -> object:
        """The sender of signals about jobs of this type: the handler, so that
        ``connect(sender=handler)`` works; the name if the handler is not known here."""
        return self._senders.get(name, name)

    def remove(self, name: str) -> None:
        """Forget a declaration (for tests)."""
        self._by_name.pop(name, None)
        self._lazy.pop(name, None)
        self._senders.pop(name, None)

    def get(self, name: str) -> Declaration | None:
        """The declaration of this job type, or None."""
        if self._lazy:
            self._load_lazy()
        return self._by_name.get(name)

    def __iter__(self) -> Iterator[Declaration]:
        self._load_lazy()
        return iter(list(self._by_name.values()))

    def near(
        self,
        name: str,
        others: list[str] | None = None,
        *,
        may_name: Callable[[str], bool] = lambda name: True,
    ) -> list[str]:
        """The names most similar to this one, among the declared ones and ``others``
        that may be named; not itself, which may be declared here without a row in a
        database."""
        names = {*self._by_name, *self._lazy, *(others or [])} - {name}
        return near_names(name, filter(may_name, names))

    def _load_lazy(self) -> None:
        for name, make in list(self._lazy.items()):
            made = make()
            if made is not None:
                self._lazy.pop(name, None)
                self.add(made)


registry = Registry()


def autodiscover(*others: str) -> None:
    """Import each installed app's modules of handlers (``jobs``, or the setting), and
    those of these ``others``."""
    autodiscover_modules(*conf.modules, *others)


def handler_names() -> list[str]:
    """The job types whose handlers are known here, without the queue's own."""
    return [
        each.name
        for each in registry
        if not each.name.startswith(OWN) and not each.is_remote
    ]


def missing_modules() -> list[str]:
    """The modules of handlers that the settings name and no installed app has.

    The default module may be missing: a project may have no handlers yet.
    """
    default = type(conf).settings["MODULES"].default
    named = [name for name in conf.modules if name not in default]
    return [name for name in named if not any(map(_has(name), apps.get_app_configs()))]


def _has(module: str) -> Callable[[AppConfig], bool]:
    def has(app: AppConfig) -> bool:
        try:
            return find_spec(f"{app.name}.{module}") is not None
        except ModuleNotFoundError:  # the first part of a name with dots
            return False

    return has
