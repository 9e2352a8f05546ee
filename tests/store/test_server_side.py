"""Projects whose OPTIONS say ``server_side_binding`` send parameters apart from the
statement, and the server has to find their types."""

from __future__ import annotations

import importlib
import pkgutil
import re

from django_jobqueue import store
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.prepared import Prepared
from tests.store.work_tables import texts_of
from tests.support.undone import check_each

VERB = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")


def statements() -> dict[str, str]:
    """Every whole statement of the store with parameters, by where it stands."""
    found = {}
    for module in pkgutil.walk_packages(store.__path__, f"{store.__name__}."):
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
        "finish.END",
        "operation_rows.OPERATIONS.MOVE",
    } <= found.keys()
    check_each(check, found.items(), least=100)
