"""The pages of leases: who holds each, and taking one away."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.models import AuditEntry, Lease
from tests.admin.conftest import LogIn
from tests.admin.pages import confirm, get, list_of, page_of, select
from tests.admin.scene import Scene


def names_in(client: Client, query: str) -> list[str]:
    """The leases that the list shows for these filters."""
    page = get(client, f"{list_of('lease')}?{query}")
    return [
        name
        for name in Lease.objects.values_list("pk", flat=True)
        if (page_of("lease", name) in {link.partition("?")[0] for link in page.links})
    ]


def test_the_list_shows_who_holds_which_lease(anna: Client, scene: Scene) -> None:
    page = get(anna, list_of("lease"))
    for text in ("import", "held", "web-1:4711", "41", "web-2:9", "lapsed", "free"):
        assert text in page.text


def test_the_list_is_narrowed_by_state_and_by_name_or_holder(
    anna: Client, scene: Scene
) -> None:
    assert sorted(names_in(anna, "state=held")) == ["import", "runworkers:main"]
    assert names_in(anna, "state=lapsed") == ["report"]
    assert names_in(anna, "state=free") == ["reindex"]
    assert names_in(anna, "q=port") == ["import", "report"]
    assert names_in(anna, "q=web-2") == ["report"]


def test_the_page_of_a_lease(anna: Client, scene: Scene) -> None:
    held = get(anna, page_of("lease", "runworkers:main")).text
    for text in ("Holder", "web-1:4711", "Somebody waits yes", "Take away", "Fence 41"):
        assert text in held
    free = get(anna, page_of("lease", "reindex")).text
    assert "Last holder" in free
    assert "Free since" in free


def test_a_lease_is_taken_away_by_who_confirms_it(anna: Client, scene: Scene) -> None:
    asked = select(anna, "lease", "take_away", "import").text
    assert "Take away the lease import?" in asked
    assert "import is held by web-1:4711." in asked
    assert Lease.objects.get(pk="import").fence == 41
    page = confirm(anna, "lease", "take-away", "import")
    assert "1 lease was taken away." in page.text
    row = Lease.objects.get(pk="import")
    assert (row.token, row.fence) == (None, 42)
    entry = AuditEntry.objects.get()
    assert (entry.by, entry.verb, entry.about) == (
        "anna",
        "take away leases",
        ["import"],
    )
    assert LogEntry.objects.get().get_change_message() == "Taken away."
    assert "Taken away." in get(anna, page_of("lease", "import")).text


def test_a_lease_that_nobody_holds_is_skipped(anna: Client, scene: Scene) -> None:
    page = confirm(anna, "lease", "take-away", "import", "reindex")
    assert "1 lease was taken away." in page.text
    assert "1 was skipped" in page.text
    assert Lease.objects.get(pk="reindex").fence == 41


def test_it_is_said_that_another_host_becomes_active(
    anna: Client, scene: Scene
) -> None:
    warning = "another host becomes active"
    assert warning not in select(anna, "lease", "take_away", "import").text
    assert warning in select(anna, "lease", "take_away", "runworkers:main").text


def test_who_may_only_look_has_no_button(log_in: LogIn, scene: Scene) -> None:
    page = get(log_in("view_lease"), page_of("lease", "import"))
    assert "Take away" not in page.text


def test_the_box_leads_to_a_lease(anna: Client, scene: Scene) -> None:
    answer = anna.get("/admin/jobqueue/queuedjob/find/", {"to": "runworkers:main"})
    assert answer.headers["Location"] == page_of("lease", "runworkers:main")
