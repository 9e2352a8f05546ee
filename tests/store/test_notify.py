"""Notify: what is said in the one channel, and how it is read."""

from __future__ import annotations

import pytest

from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.notify import News, notify, parse, payload
from tests.store.meanwhile import Ear, open_transaction


@pytest.mark.parametrize("news", News)
@pytest.mark.parametrize("about", ["", "default", "a:b", "ü", 7])
def test_what_is_said_is_understood(news: News, about: object) -> None:
    assert parse(payload(news, about)) == (news, str(about))


@pytest.mark.parametrize("text", ["", ":", "x:", "jobs", "qq:a", "Q:a", "\x00:"])
def test_what_is_none_of_ours_is_ignored(text: str) -> None:
    assert parse(text) is None


def test_what_is_said_is_heard(own: OwnConnection, ear: Ear) -> None:
    notify(own, News.CONTROL, 7)
    notify(DjangoDatabase(), News.JOB_TYPES)

    assert ear.heard() == ["w:7", "t:"]


def test_nothing_is_heard_before_the_commit(own: OwnConnection, ear: Ear) -> None:
    with open_transaction(own) as transaction:
        notify(transaction, News.JOBS, "default")
        assert ear.heard() == []

    assert ear.heard() == ["q:default"]
