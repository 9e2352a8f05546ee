"""Checks of the HTTP API's settings."""

from __future__ import annotations

from typing import Any

from django.test import override_settings

from django_jobqueue.contrib.http.checks import check_http, check_transport


class Mine:
    challenge = ""

    def authenticate(self, request: Any) -> None:
        """Nobody."""


mine = Mine()
NOTHING = 7


def test_e050_w050_w051_those_who_know_callers_and_how_tokens_travel() -> None:
    for paths, ids in (
        (["django_jobqueue.contrib.http.auth.Basic", f"{__name__}.mine"], []),
        ([f"{__name__}.Mine"], []),
        (["django_jobqueue.contrib.http.auth.Token"], ["jobqueue.E050"]),
        (["nowhere"], ["jobqueue.E050"]),
        ([f"{__name__}.NOTHING"], ["jobqueue.E050"]),
        ([], ["jobqueue.W050"]),
    ):
        with override_settings(JOBQUEUE={"HTTP_AUTH": paths}):
            found = list(check_http(None))
        assert [message.id for message in found] == ids, paths
        if paths == ["django_jobqueue.contrib.http.auth.Token"]:
            assert found[0].hint == (
                "Did you mean 'django_jobqueue.contrib.http.auth.Tokens'?"
            )
    assert list(check_transport(None)) == []
    with override_settings(JOBQUEUE={"HTTP_REQUIRE_TLS": False}):
        assert [message.id for message in check_transport(None)] == ["jobqueue.W051"]
