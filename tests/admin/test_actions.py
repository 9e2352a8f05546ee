"""Every button of the admin is an action: declared, and guarded in one place."""

from __future__ import annotations

from functools import partial
from inspect import unwrap
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.urls import URLPattern

from django_jobqueue.admin import jump_box
from django_jobqueue.admin.actions.action import Action, ConfirmedAction
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.jobs import search_page
from django_jobqueue.admin.saved_views import view_page

PAGES: dict[str, ActionAdmin] = {
    str(model._meta.model_name): model_admin
    for model, model_admin in admin.site._registry.items()
    if isinstance(model_admin, ActionAdmin)
}
ACTIONS = [(name, one) for name, page in PAGES.items() for one in page.page_actions]


def ids(patterns: list[URLPattern]) -> set[str]:
    """The names of these addresses, and the routes of those that have none."""
    return {str(one.name or one.pattern) for one in patterns}


def test_every_page_of_the_queue_takes_its_buttons_from_actions() -> None:
    of_app = {
        str(model._meta.model_name)
        for model in admin.site._registry
        if model._meta.app_label == "jobqueue" and not model._meta.proxy
    }
    assert set(PAGES) == of_app


def test_a_page_has_no_address_but_those_of_django_and_of_its_actions() -> None:
    for name, page in PAGES.items():
        site = page.admin_site
        above = [*jump_box.urls(site), *search_page.urls(site), *view_page.urls(site)]
        more = {"queuedjob": ids(above), "jobtype": {"jobqueue_jobtype_names"}}
        actions = {f"jobqueue_{name}_{one.name}" for one in page.page_actions}
        of_django = ids(ModelAdmin.get_urls(page))
        assert ids(page.get_urls()) == of_django | more.get(name, set()) | actions, name


def test_an_action_is_reached_only_through_the_check_of_its_rights() -> None:
    assert len(ACTIONS) > 50
    for page, action in ACTIONS:
        name = f"jobqueue_{page}_{action.name}"
        (url,) = (one for one in PAGES[page].get_urls() if one.name == name)
        assert hasattr(url.callback, "__wrapped__"), name  # by the site's own check
        view: Any = unwrap(url.callback)
        assert isinstance(view, partial), name
        assert (view.func, view.keywords) == (PAGES[page].perform, {"action": action})


def test_an_action_says_who_may_do_it_and_asks_answers_or_does() -> None:
    for page, action in ACTIONS:
        name, kind = f"{page}/{action.name}", type(action)
        assert action.rights or kind.is_allowed is not Action.is_allowed, name
        if isinstance(action, ConfirmedAction):
            assert kind.ask is not ConfirmedAction.ask, name
            assert kind.do is not ConfirmedAction.do, name
            assert action.is_for_selection, name
        else:
            assert kind.respond is not Action.respond, name
            menu = kind.respond_to_selected is not Action.respond_to_selected
            assert menu or action.menu_label is None, name
