"""What lists say of the data of a job."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import job
from django_jobqueue.domain.registry import registry
from django_jobqueue.text import data_summary
from django_jobqueue.text.data_summary import summary
from tests.support.tables import differing, refusal

ORDER = {"order_id": 4711, "customer": {"name": "Ann  Lee", "vip": True}, "lines": [1]}


def test_a_template_is_filled_from_the_data_or_short_values_are_shown() -> None:
    filled = [
        ("order {order_id}", "order 4711"),
        ("{customer.name}: {order_id}", "Ann Lee: 4711"),
        ("{customer}", '{"name": "Ann Lee", "vip": true}'),
        ("{lines} of {nothing}, {customer.age}", "[1] of –, –"),
        ("{{x}} {customer.vip}", "{x} true"),
        (None, "order_id 4711"),
        ("{broken", "order_id 4711"),  # written by plain SQL
    ]
    assert differing(filled, lambda template: summary(template, ORDER)) == []
    data = {"a": None, "b": "", "c": [1], "d": 1, "e": "x" * 99, "f": True, "g": 2}
    assert summary(None, data) == f"d 1, e {'x' * 39}…, f true"
    assert summary(None, {}) == summary(None, [1]) == summary(None, None) == ""
    wide = {f"key{n}": "x" * 1_000 for n in range(9)}
    assert len(summary("".join(f"{{{key}}}" for key in wide), wide)) == 120
    assert "\n" not in summary("{a}", {"a": "one\ntwo"})
    assert data_summary.keys_of("{a} {b.c} {a.d}") == {"a", "b"}
    assert data_summary.keys_of(None) == data_summary.keys_of("{") == set()


PROBLEMS: list[tuple[Any, str]] = [
    (7, "must be a text like 'order {order_id}', not 7."),
    ("", "must be a line of text, not ''."),
    ("a\nb", "must be a line of text"),
    ("x" * 201, "must have at most 200 characters."),
    ("{a", "cannot be read: "),
    ("{}", "takes names like {order_id} or {customer.name}, not {}."),
    ("{a[0]}", "not {a[0]}."),
    ("{a:>10}", "not {a:>10}."),
    ("{a!r}", "not {a!r}."),
    ("{a..b}", "not {a..b}."),
    ("{order}", "summary names 'order', which is no parameter. Did you mean"),
]


def test_a_summary_that_cannot_be_filled_is_refused() -> None:
    def send(order_id: int, customer: str = "") -> None: ...

    def refused(value: Any) -> str:
        declare = job(name="summaries.send", summary=value)
        return refusal(ImproperlyConfigured, declare, send)

    assert differing(PROBLEMS, refused, str.__contains__) == []
    assert registry.get("summaries.send") is None

    @job(name="summaries.any", summary="{order}")
    def send_any(**data: Any) -> None: ...

    assert send_any.declaration.policy.summary == "{order}"
