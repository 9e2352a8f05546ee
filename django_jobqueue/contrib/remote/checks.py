"""Checks of ENDPOINTS: job types name what is there, and jobs can be sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning

from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote.clients import is_installed
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import RemoteExtraMissing
from django_jobqueue.text.suggestions import did_you_mean


@register("jobqueue")
def check_endpoints(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E060, E061, W060: what remote_job() names is there, and can be reached and
    answer. That ENDPOINTS is written right, says E003."""
    sent = [one for one in registry if one.endpoint]
    for declaration in sent:
        if declaration.endpoint not in conf.endpoints:
            known = ", ".join(conf.endpoints) or "none"
            hint = did_you_mean(declaration.endpoint, conf.endpoints).strip()
            yield Error(
                f"remote_job({declaration.name!r}) names the endpoint "
                f"{declaration.endpoint!r}, which is not in JOBQUEUE['ENDPOINTS'].",
                hint=hint or f"The endpoints are: {known}.",
                id="jobqueue.E060",
            )
    if sent and not is_installed():
        yield Error(str(RemoteExtraMissing()), id="jobqueue.E061")
    if sent and not conf.site_url:
        yield Warning(
            "JOBQUEUE['SITE_URL'] is not set, so endpoints get no URL for the result "
            "of a job: callback_url is null.",
            hint="Give the address of your site, such as 'https://shop.example'.",
            id="jobqueue.W060",
        )
