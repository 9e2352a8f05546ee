"""A page is registered without being imported, and is itself when it is used."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.exceptions import AlreadyRegistered, NotRegistered
from django.db.models import Model
from django.urls import Resolver404
from django.urls.resolvers import RegexPattern, URLResolver

from django_jobqueue import admin as pages
from django_jobqueue import models
from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.models import Queue

HERE = f"{__name__}.QueuePage"


class QueuePage(admin.ModelAdmin):
    """What is registered below; the base of nothing of ours."""

    list_per_page = 7

    def __init__(self, model: type[Model], admin_site: admin.AdminSite) -> None:
        super().__init__(model, admin_site)
        self.first_letters = [model.__name__[0]]


class Picklable(admin.ModelAdmin):
    def __reduce__(self) -> Any:
        return str, ("pickled",)


def registered(path: str = HERE) -> Any:
    """A page that nobody has asked for anything."""
    site = admin.AdminSite("lazy")
    site.register(Queue, lazy_page(path))
    return site._registry[Queue]  # private: other packages walk it


def is_loaded(page: Any) -> bool:
    return type(page) is QueuePage


@pytest.mark.parametrize(
    "use",
    [
        lambda page: page.model is Queue and page.opts is Queue._meta,
        lambda page: page.list_per_page == 7,
        lambda page: not hasattr(page, "nothing"),
        lambda page: {"first_letters", "get_urls"} <= {*dir(page)},
        lambda page: vars(page)["first_letters"] == ["Q"],
        lambda page: type(copy.copy(page)) is QueuePage,
        lambda page: len(page.urls) > 3 and page.urls[0].name.endswith("changelist"),
        lambda page: page.check() == [],
    ],
)
def test_whatever_is_asked_of_a_page_makes_it_the_real_one(
    use: Callable[[Any], bool],
) -> None:
    page = registered()
    before = hash(page), {page: "kept"}
    assert not is_loaded(page)
    assert use(page)
    assert is_loaded(page)
    assert (hash(page), {page: "kept"}) == before
    assert page is page.admin_site.get_model_admin(Queue)


def test_a_page_is_of_its_class_from_the_first_question_on() -> None:
    assert isinstance(registered(), QueuePage)
    assert not isinstance(registered(), Picklable)
    page = registered()
    assert page.__class__ is QueuePage
    assert isinstance(page, QueuePage)
    assert page.list_per_page == 7
    assert isinstance(page, QueuePage)


def test_a_page_is_pickled_as_the_real_one() -> None:
    page = registered(f"{__name__}.Picklable")
    assert pickle.loads(pickle.dumps(page)) == "pickled"


def test_a_page_that_was_not_asked_for_anything_is_not_loaded() -> None:
    page = registered("tests.admin.nowhere.NoPage")
    site = object.__getattribute__(page, "admin_site")
    assert repr(page) == "<NoPage, not loaded: Queue>"
    assert isinstance(page, admin.ModelAdmin)
    assert page == page
    assert page in [page]
    resolver = URLResolver(RegexPattern(r"^/"), site.get_urls(), app_name="admin")
    assert resolver.resolve("/login/").func.__name__ == "login"
    with pytest.raises(AlreadyRegistered, match=r"registered with 'jobqueue.NoPage'"):
        site.register(Queue, QueuePage)
    site.unregister(Queue)
    with pytest.raises(NotRegistered):
        site.get_model_admin(Queue)


def test_addresses_are_loaded_by_the_first_path_below_the_page() -> None:
    page = registered()
    site = object.__getattribute__(page, "admin_site")
    site.final_catch_all_view = False
    resolver = URLResolver(RegexPattern(r"^/"), site.get_urls(), app_name="admin")
    with pytest.raises(Resolver404):
        resolver.resolve("/jobqueue/worker/")
    assert not is_loaded(page)
    assert resolver.resolve("/jobqueue/queue/").func.model_admin is page


def test_what_a_project_sets_stays() -> None:
    page = registered()
    page.list_per_page, page.first_letters = 20, ["M"]
    assert not is_loaded(page)
    assert (page.list_filter, page.list_per_page, page.first_letters) == ((), 20, ["M"])


def test_a_page_that_was_unregistered_is_loaded_all_the_same() -> None:
    page = registered()
    site = object.__getattribute__(page, "admin_site")
    site.unregister(Queue)
    site.register(Queue, QueuePage, list_per_page=9)
    assert page.list_per_page == 7
    assert site.get_model_admin(Queue).list_per_page == 9


def test_two_threads_that_ask_first_get_one_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = Barrier(2, timeout=30)
    made = []

    def slowly(self: QueuePage, *args: Any) -> None:
        admin.ModelAdmin.__init__(self, *args)
        self.first_letters = [str(id(self))]
        made.append(self)
        both.wait()  # neither is the first

    monkeypatch.setattr(QueuePage, "__init__", slowly)
    page = registered()
    with ThreadPoolExecutor(2) as threads:
        letters = [threads.submit(getattr, page, "first_letters") for _ in range(2)]
        first, second = (one.result() for one in letters)
    assert first is second
    assert len(made) == 2
    assert is_loaded(page)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("tests.admin.nowhere.NoPage", "No module named 'tests.admin.nowhere'"),
        (f"{__name__}.NoPage", 'does not define a "NoPage" attribute'),
        (HERE, "has no attribute 'broken'"),
    ],
)
def test_a_page_that_cannot_be_loaded_says_so_to_all_who_ask(
    path: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also to those who would take an AttributeError as an answer."""
    with monkeypatch.context() as broken:
        broken.setattr(QueuePage, "__init__", lambda self, *args: self.broken)
        page = registered(path)
        for ask in (
            lambda: hasattr(page, "urls") and [*page.urls],
            lambda: getattr(page, "list_display", None),
            lambda: page.check(),
        ):
            with pytest.raises(ImportError, match=why) as error:
                ask()
            assert str(error.value).startswith(
                f"The admin's page of jobqueue.Queue, {path}, cannot be loaded: "
            )
    if path == HERE:  # and is asked again when it was mended
        assert page.first_letters == ["Q"]


def test_a_site_may_derive_from_what_is_registered() -> None:
    class Mixin:
        list_per_page = 8

    class OurSite(admin.AdminSite):
        def register(self, models: Any, page: Any = None, **options: Any) -> None:
            page = type("Mixed", (Mixin, page or admin.ModelAdmin), {})
            super().register(models, page, **options)

    mixed, other = OurSite("mixed"), admin.AdminSite("other")
    mixed.register(Queue, lazy_page(HERE))
    page: Any = mixed.get_model_admin(Queue)
    assert (type(page).__name__, page.list_per_page) == ("Mixed", 8)
    assert isinstance(page, QueuePage)
    other.register(Queue, lazy_page(HERE), list_per_page=9)
    page = other.get_model_admin(Queue)
    assert (page.list_per_page, page.first_letters) == (9, ["Q"])


def test_a_site_may_take_over_what_another_one_has() -> None:
    page = registered()
    other = admin.AdminSite("other")
    other.register(Queue, type(page))
    copied: Any = other._registry[Queue]  # private: nobody has asked it
    assert copied.first_letters == ["Q"]
    assert copied.admin_site is other
    assert not is_loaded(page)


# Our own pages.


@pytest.mark.parametrize("name", pages.__all__)
def test_each_page_is_a_class_of_the_package_and_is_registered(name: str) -> None:
    model = getattr(models, name.removesuffix("Admin"))
    page = admin.site.get_model_admin(model)
    assert page.__class__ is getattr(pages, name)
    assert page.model is model


def test_the_package_lists_its_pages_and_knows_no_others() -> None:
    assert {*pages.__all__} <= {*dir(pages)}
    with pytest.raises(AttributeError, match="no attribute 'NoAdmin'"):
        pages.NoAdmin  # noqa: B018
