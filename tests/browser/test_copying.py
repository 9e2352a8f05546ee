"""Buttons that copy, in a browser."""

from __future__ import annotations

import json

import pytest

from django_jobqueue.models import ArchivedJob, JobType
from tests.admin.pages import page_of
from tests.admin.scene import Scene, build
from tests.browser.conftest import Screen, See

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CLIPBOARD = ["clipboard-read", "clipboard-write"]
# As on a page that came over http from another host.
INSECURE = "Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined})"


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    """Rows of every state."""
    return build()


def announced(screen: Screen, text: str) -> None:
    """Wait until this is read aloud."""
    status = screen.page.locator("[data-jq-copied]", has_text=text)
    status.wait_for(state="attached")


def copied(screen: Screen, name: str) -> str:
    """What is copied when somebody presses the button of this name with a key."""
    named = screen.page.get_by_role("button", name=name, exact=True)
    button = named.first.element_handle()
    button.focus()
    screen.page.keyboard.press("Enter")
    announced(screen, "Copied")
    assert button.inner_text() == "Copied"
    assert screen.page.evaluate("document.activeElement.className") == "jq-copy"
    text: str = screen.page.evaluate("navigator.clipboard.readText()")
    return text


def test_ids_keys_and_tracebacks_are_copied_whole(see: See, scene: Scene) -> None:
    screen = see(permissions=CLIPBOARD)
    job = scene.archived["failed"]
    screen.open(page_of("archivedjob", job))
    assert copied(screen, "Copy the id") == str(job)
    screen.open(page_of("archivedjob", job))
    assert copied(screen, "Copy the traceback").startswith("Traceback (most recent")
    screen.open(page_of("failuregroup", scene.group))
    assert copied(screen, "Copy the fingerprint") == str(scene.group)


def test_data_are_copied_as_json_with_their_secrets_masked(
    see: See, scene: Scene
) -> None:
    job = ArchivedJob.objects.get(pk=scene.archived["failed"])
    deep = {"a": {"b": {"c": {"d": [1, 2, {"e": "x" * 3_000}]}}}}
    ArchivedJob.objects.update(data={**deep, "iban_of": "DE0012345", "token": "s3cret"})
    JobType.objects.filter(pk=job.job_type_id).update(sensitive=["iban_of"])
    screen = see(permissions=CLIPBOARD)
    screen.open(page_of("archivedjob", job.pk))
    text = copied(screen, "Copy: Data")
    assert json.loads(text) == {**deep, "iban_of": "••••", "token": "••••"}


def test_over_http_the_text_is_copied_by_selecting_it(see: See, scene: Scene) -> None:
    reader = see(permissions=CLIPBOARD)
    reader.page.add_init_script(
        "ClipboardItem = undefined; Clipboard.prototype.write = undefined"
    )
    job = scene.archived["failed"]
    reader.open(page_of("archivedjob", job))
    assert copied(reader, "Copy the id") == str(job)
    screen = see()
    screen.page.add_init_script(INSECURE)
    screen.open(page_of("archivedjob", job))
    screen.press("Copy: Data")
    announced(screen, "Copied")
    assert screen.page.locator("textarea").count() == 0


def test_the_buttons_of_a_refreshed_region_copy_and_no_login_page(
    see: See, scene: Scene
) -> None:
    screen = see(permissions=CLIPBOARD)
    job = scene.queued["later"]
    screen.open(page_of("queuedjob", job))
    screen.page.evaluate(
        """() => {
          const region = document.querySelector("[data-jq-region=job]");
          region.replaceWith(region.cloneNode(true));
        }"""
    )
    assert copied(screen, "Copy the id") == str(job)
    screen.open(page_of("archivedjob", scene.archived["failed"]))
    screen.page.context.clear_cookies()
    screen.press("Copy: Data")
    announced(screen, "Not copied")


def test_without_scripts_there_is_no_dead_button(see: See, scene: Scene) -> None:
    screen = see(java_script_enabled=False)
    screen.open(page_of("archivedjob", scene.archived["failed"]))
    buttons = screen.page.locator(".jq-copy")
    assert buttons.count() > 1
    assert not any(one.is_visible() for one in buttons.all())
