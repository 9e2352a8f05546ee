"""The same shop with tasks, by settings only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue.domain.registry import registry
from testproject import settings, settings_tasks
from testproject.shop import background
from testproject.shop.models import Order, Payment
from testproject.shop.report import checks
from testproject.shop.run import figures
from tests.shop.conftest import whole_run
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued


def in_which_they_differ() -> dict[str, Any]:
    """The settings of the shop with tasks that are not those of the other."""
    jobs, tasks = vars(settings), vars(settings_tasks)
    return {k: v for k, v in tasks.items() if k.isupper() and v != jobs.get(k)}


@pytest.fixture(autouse=True)
def tasks(shop_settings: Any) -> Iterator[None]:
    """What ``testproject.settings_tasks`` says, for this test."""
    before = {declaration.name for declaration in registry}
    for name, value in in_which_they_differ().items():
        setattr(shop_settings, name, value)
    yield
    for declaration in registry:
        if declaration.name not in before:
            registry.remove(declaration.name)


def test_two_settings_make_the_difference() -> None:
    assert set(in_which_they_differ()) == {"SHOP_TASKS", "TASKS"}


def test_a_run_of_the_shop_with_tasks_has_nothing_wrong(
    make_worker: Callable[..., HandDriven], open_shop: str
) -> None:
    run = whole_run(make_worker)
    found = checks(run, placed=[order.pk for order in run.orders])
    assert [check.found for check in found if not check.holds] == []
    assert len(found) == 12
    assert {row.job_type.rpartition(".")[0] for row in figures(run)} == {
        "testproject.shop.tasks"
    }


def test_a_task_runs_by_the_policy_that_it_states(
    place: Callable[..., Order], worker: HandDriven
) -> None:
    order = place(card_token="tok_visa_0002")
    captures = queued(job_type=background.job_type("capture_payment"))
    assert [(job.priority, job.data["order_id"]) for job in captures] == [
        (50, order.pk)
    ]
    worker.work()
    (job,) = archived(job_type=background.job_type("capture_payment"))
    assert (job.status, job.attempts) == ("failed", 1)
    assert Payment.objects.get().state == "declined"
    assert [job.queue for job in queued()] == ["webhooks"]


def test_an_invoice_that_waits_to_be_mailed_is_not_enqueued_again(
    place: Callable[..., Order], worker: HandDriven
) -> None:
    order = place()
    for _ in range(2):
        background.render_invoice.enqueue(order_id=order.pk)
    worker.work()
    assert len(archived(job_type=background.job_type("render_invoice"))) == 3
    assert len(archived(job_type=background.job_type("send_invoice"))) == 1
