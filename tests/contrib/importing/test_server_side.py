"""The statements on other packages' tables, where a project's OPTIONS say
``server_side_binding``."""

from __future__ import annotations

from typing import Any

from django.db import connection

from django_jobqueue.contrib.importing import foreign_tables
from django_jobqueue.store.prepared import Prepared


def test_the_server_knows_the_parameters_for_django_celery_beat(beat: Any) -> None:
    Prepared(connection.connection, foreign_tables.DISABLE_CELERY_BEAT)


def test_the_server_knows_the_parameters_for_django_q2(q2: Any) -> None:
    Prepared(connection.connection, foreign_tables.DISABLE_DJANGO_Q2)
