"""The pages of leases: who holds each, and taking one away."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.models import AuditEntry
from tests.admin.conftest import LogIn
from tests.admin.pages import get, list_of, page_of, select
from tests.admin.scene import Scene
from tests.admin.units import act, buttons, question, shown


def test_the_list_shows_who_holds_which_lease_and_is_narrowed(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, list_of("lease"))
    for text in ("import", "held", "web-1:4711", "41", "web-2:9", "lapsed", "free"):
        assert text in page.text
    for query, names in (
        ({"state": "held"}, ["import", "runworkers:main"]),
        ({"state": "lapsed"}, ["report"]),
        ({"state": "free"}, ["reindex"]),
        ({"q": "port"}, ["import", "report"]),
        ({"q": "web-2"}, ["report"]),
    ):
        assert sorted(shown(anna, "lease", **query)) == names, query
    # The box leads to a lease.
    there = anna.get("/admin/jobqueue/queuedjob/find/", {"to": "runworkers:main"})
    assert there.headers["Location"] == page_of("lease", "runworkers:main")


def test_the_page_of_a_lease(anna: Client, log_in: LogIn, scene: Scene) -> None:
    held = get(anna, page_of("lease", "runworkers:main")).text
    for text in ("Holder", "web-1:4711", "Somebody waits yes", "Take away", "Fence 41"):
        assert text in held
    free = get(anna, page_of("lease", "reindex")).text
    assert "Last holder" in free
    assert "Free since" in free
    assert buttons(log_in("view_lease"), "lease", "import") == set()


def test_a_lease_is_taken_away_by_who_confirms_it(anna: Client, scene: Scene) -> None:
    warning = "another host becomes active"
    asked = select(anna, "lease", "take_away", "import").text
    assert "Take away the lease import?" in asked
    assert "import is held by web-1:4711." in asked
    assert warning not in asked
    assert warning in question(anna, "lease", "take-away", "runworkers:main")
    assert Lease.objects.get(pk="import").fence == 41
    told = act(anna, "lease", "take-away", "import", "reindex")
    assert "1 lease was taken away." in told
    assert "1 was skipped" in told  # nobody holds it
    row = Lease.objects.get(pk="import")
    assert (row.token, row.fence) == (None, 42)
    assert Lease.objects.get(pk="reindex").fence == 41
    entry = AuditEntry.objects.get()
    found = (entry.by, entry.verb, entry.about)
    assert found == ("anna", "take away leases", ["import"])
    assert LogEntry.objects.get().get_change_message() == "Taken away."
    assert "Taken away." in get(anna, page_of("lease", "import")).text
