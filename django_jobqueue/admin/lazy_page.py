"""Registers a page of the admin without importing it.

Django imports the ``admin`` of every app in each process that has
``django.contrib.admin`` installed: also in workers, commands and web processes that
never show a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.db import models
from django.forms.widgets import MediaDefiningClass
from django.utils.functional import cached_property
from django.utils.module_loading import import_string

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin

_MADE: Final = "_jobqueue_made"


def lazy_page(path: str) -> type[ModelAdmin]:
    """A class for ``AdminSite.register()`` that stands for the page at this path.

    The object in the site's registry becomes the page when one of its attributes is
    first read. If the page cannot be imported or made, that raises ``ImportError``; the
    next use tries again.
    """
    module, _, name = path.rpartition(".")
    attrs = {"__module__": module, "path_of_page": path}
    return _LazyPageType(name, (_LazyPage,), attrs)


def _is_lazy(one: type) -> bool:
    return "path_of_page" in vars(one)


def _class_of(one: Any) -> type[ModelAdmin]:
    page: type[ModelAdmin] = import_string(one.path_of_page) if _is_lazy(one) else one
    return page


class _LazyPageType(MediaDefiningClass):
    """A class derived from a lazy page derives from the page itself: some sites mix a
    class of their own into whatever is registered."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], attrs: dict[str, Any]
    ) -> type[Any]:
        loaded = tuple(map(_class_of, bases))
        if loaded != bases:
            return type(name, loaded, attrs)
        return super().__new__(mcs, name, bases, attrs)


class _LazyPage(ModelAdmin, metaclass=_LazyPageType):
    """An object that becomes the page by changing its class, as modules do in
    ``importlib.util.LazyLoader``: every reference to it stays valid."""

    path_of_page: ClassVar[str]

    def __init__(self, model: type[models.Model], admin_site: admin.AdminSite) -> None:
        self.model = model
        self.admin_site = admin_site

    def __getattribute__(self, name: str) -> Any:
        # Importing the project's URLconf collects the addresses of all pages, whatever
        # the first request asks for.
        if name == "urls":
            return _LazyUrls(self)
        # Without becoming the page: isinstance() ignores a class equal to type(self),
        # which it has compared before.
        if name == "__class__":
            with _explained(self):
                return _class_of(type(self))
        _load(self)
        return getattr(self, name)

    def __str__(self) -> str:  # of a model that is registered twice
        return f"{_values(self)['model']._meta.app_label}.{type(self).__name__}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, not loaded: {_values(self)['model'].__name__}>"


class _LazyUrls(Sequence[Any]):
    """The addresses of a page. Django's resolver iterates them when a path begins with
    the page's, or when it first reverses a name."""

    def __init__(self, page: ModelAdmin) -> None:
        self._page = page

    @cached_property
    def _urls(self) -> list[Any]:
        _load(self._page)
        return self._page.urls

    def __iter__(self) -> Iterator[Any]:
        return iter(self._urls)

    def __getitem__(self, index: Any) -> Any:
        return self._urls[index]

    def __len__(self) -> int:
        return len(self._urls)


def _values(page: ModelAdmin) -> dict[str, Any]:
    values: dict[str, Any] = object.__getattribute__(page, "__dict__")
    return values


def _load(page: ModelAdmin) -> None:
    """Make the page, and give its class and attributes to this object.

    Threads may do so at the same time. There is no lock, since a fork could copy it
    while it is held: all use the page that was made first, and none overwrites a value.
    """
    if not _is_lazy(type(page)):
        return
    given = _values(page)
    with _explained(page):
        made = _class_of(type(page))(given["model"], given["admin_site"])
    made = given.setdefault(_MADE, made)
    for name, value in vars(made).items():
        given.setdefault(name, value)  # what a project has set stays
    page.__class__ = type(made)
    given.pop(_MADE, None)


@contextmanager
def _explained(page: ModelAdmin) -> Iterator[None]:
    """Turn errors into one that names the page. An ``AttributeError`` would look like
    an attribute that the page does not have."""
    path = getattr(type(page), "path_of_page", None)
    try:
        yield
    except Exception as error:
        model = _values(page)["model"]._meta.label
        raise ImportError(
            f"The admin's page of {model}, {path}, cannot be loaded: {error}"
        ) from error
