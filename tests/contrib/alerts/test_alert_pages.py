"""The list of alerts, and those that fire on the overview."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from django_jobqueue.contrib.alerts.models import Alert, AlertDelivery
from django_jobqueue.models import FailureGroup
from django_jobqueue.stats import overview
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of
from tests.admin.scene import Scene
from tests.admin.units import listing
from tests.stats.rows import ago

FRONT = "/admin/jobqueue/"
LATE = "12 jobs are ready in queue mail; the oldest has waited for 6 m."

pytestmark = pytest.mark.django_db


def alert(condition: str = "backlog", subject: str = "mail", **columns: Any) -> Alert:
    values = {"text": LATE, "fired_at": ago(minutes=7), "last_seen": ago(minutes=1)}
    return Alert.objects.create(
        condition=condition, subject=subject, **{**values, **columns}
    )


def listed(client: Client) -> tuple[Page, str]:
    page = get(client, list_of("alert"))
    table = page.html.partition('id="result_list"')[2].partition("</table>")[0]
    return page, Page(f"<p {table}").text


def delivered(to: Alert, channel: str, **columns: Any) -> None:
    AlertDelivery.objects.create(alert=to, event="fired", channel=channel, **columns)


def test_an_alert_is_shown_with_what_each_channel_answered(anna: Client) -> None:
    one = alert(last_seen=ago(hours=2))
    delivered(one, "mail", sent_at=ago(minutes=6))
    late = {"next_attempt_at": ago(seconds=-150), "attempts": 3}
    delivered(one, "pager", error="HTTP 503", **late)
    delivered(one, "slack", error="HTTP 404", given_up_at=ago(minutes=1))
    delivered(one, "shop.notify")
    _page, row = listed(anna)
    assert "firing 7 m" in row
    assert "last seen 2 h 00 m ago" in row  # nobody checks it
    assert f"backlog mail {LATE}" in row
    assert "mail : fired – accepted 6 m ago" in row
    assert "pager : fired – HTTP 503; next attempt in 2 m" in row
    assert "slack : fired – given up: HTTP 404" in row
    assert "shop.notify : fired – waits" in row


def test_a_failure_has_its_sentence_and_its_message_for_those_who_may(
    anna: Client, log_in: LogIn
) -> None:
    group = FailureGroup.objects.create(
        fingerprint=uuid4(),
        coarse=uuid4(),
        error_class="ValueError",
        frame="shop.jobs:send",
        template="no such order",
    )
    id = str(group.pk)
    alert("failure_group", id, text="", state="reported", last_seen=None)
    page, row = listed(anna)
    assert "A new failure: ValueError in shop.jobs:send no such order" in row
    assert [link for link in page.links if id in link]
    blind, row = listed(log_in("view_alert"))
    assert "A new failure" in row
    assert "no such order" not in blind.text
    assert not [link for link in blind.links if id in link]


def test_alerts_are_filtered(anna: Client) -> None:
    alert(text="-")
    done = {"state": "resolved", "resolved_at": ago(minutes=2)}
    alert("unserved", "night", text="-", **done)
    query: dict[str, str]
    for query, subjects in (
        ({"state": "firing"}, {"mail"}),
        ({"state": "resolved"}, {"night"}),
        ({"condition": "unserved"}, {"night"}),
        ({"q": "NIGHT"}, {"night"}),
        ({"q": "nothing"}, set()),
        ({"fired_at__range__gte_0": "2001-01-01"}, {"mail", "night"}),
        ({"fired_at__range__lte_0": "2001-01-01"}, set()),
        ({"fired_at__range__lte_0": "soon"}, set()),
    ):
        rows = listing(anna, "alert", **query).result_list
        assert {row.subject for row in rows} == subjects, query


def test_firing_alerts_are_on_the_overview_for_those_who_may_see_them(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    alert(subject="mail & more")
    alert("old_transaction", "")
    alert("backlog", "night", state="resolved")
    overview.forget()
    page = get(anna, FRONT)
    assert "Firing alerts" in page.text
    assert "backlog: mail & more 7 m ago" in page.text
    assert "old transaction 7 m ago" in page.text
    assert "night" not in page.text.partition("Firing alerts")[2][:200]
    jobs, own = f"{list_of('queuedjob')}?queue=mail+%26+more", "alert/?state=firing"
    assert jobs in page.links
    assert [link for link in page.links if link.endswith(own)]
    assert "Firing alerts" not in get(log_in("view_overview"), FRONT).text
    only_alerts = get(log_in("view_overview", "view_alert", name="carl"), FRONT)
    assert "backlog: mail & more" in only_alerts.text
    assert jobs not in only_alerts.links
