"""A view is saved, opened, renamed and deleted in a browser, even without scripts."""

from __future__ import annotations

import pytest

from django_jobqueue.models import SavedView
from tests.admin.pages import list_of
from tests.admin.scene import build
from tests.browser.conftest import See

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_the_life_of_a_view(see: See, transactional_db: None, scripts: bool) -> None:
    build()
    screen = see("Job operator", java_script_enabled=scripts)
    page = screen.page
    screen.open(f"{list_of('archivedjob')}?status=failed")
    page.locator(".jq-views summary").click()
    page.get_by_label("Name", exact=True).fill("Broken")
    page.get_by_label("share with all").check()
    screen.press("Save")
    screen.shows("The view “Broken” was saved.")
    page.locator("[aria-current=true]", has_text="Broken").wait_for()
    assert page.url.endswith("?status=failed")

    screen.press("Manage views")
    page.get_by_label("Name", exact=True).fill("Lost")
    screen.press("Save")
    screen.shows("The view “Lost” was changed.")
    screen.open(list_of("archivedjob"))
    screen.press("Lost")
    page.wait_for_url("**/?status=failed")

    screen.press("Manage views")
    screen.press("Delete Lost")
    screen.shows("There are no saved views.")
    assert not SavedView.objects.exists()
