"""Projects whose OPTIONS say ``server_side_binding`` send parameters apart from the
statement, and the server has to find their types."""

from __future__ import annotations

import importlib
import re

from django_jobqueue.store import on_failure
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.prepared import Prepared
from django_jobqueue.store.queue import finish_unsuccessful, rescue
from tests.architecture.source import modules
from tests.store.work_tables import HOMES, texts_of
from tests.support.undone import check_each

VERB = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")


def statements() -> dict[str, str]:
    """Every whole statement of the store with parameters, by where it stands."""
    found = {}
    for module in modules():
        if not module.path.startswith(HOMES):
            continue
        members = texts_of(importlib.import_module(module.name))
        leaf = module.name.rpartition(".")[2]
        for name, value in members.items():
            if name.isupper() and not name.startswith("_"):
                is_template = re.search(r"\{\w+\}", value)
                if VERB.match(value) and "%(" in value and not is_template:
                    found[f"{leaf}.{name}"] = value
    return found


def test_the_server_knows_the_type_of_every_parameter(own: OwnConnection) -> None:
    def check(name: str, statement: str) -> None:
        with own.raw() as connection:
            Prepared(connection, statement)

    found = statements()
    assert {
        "claim.CLAIM",
        "alert_rows.HAND_OVER",
        "finish_unsuccessful.END",
        "operation_rows.OPERATIONS.MOVE",
    } <= found.keys()
    check_each(check, found.items(), least=100)


def test_without_features_the_statements_of_failures_are_whole(
    own: OwnConnection,
) -> None:
    for statement in (finish_unsuccessful.END, rescue.RESCUE, rescue.TAKE_OVER):
        with own.raw() as connection:
            Prepared(connection, statement.format(on_failure=""))
        assert "jobqueue_alerts_alert" in on_failure.composed(statement)
