"""The metrics of the cluster, as a page of your site."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers

from django_jobqueue.exceptions import MetricsExtraMissing
from django_jobqueue.metrics import cluster_figures
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.monitoring.access import for_monitoring, text
from django_jobqueue.store.connection import DjangoDatabase


@for_monitoring
def metrics(request: HttpRequest) -> HttpResponse:
    """The metrics of the cluster, in the format that the request accepts. Without the
    extra 501, with the line of pip."""
    try:
        exposition = _exposition()
    except MetricsExtraMissing as error:
        return text(HTTPStatus.NOT_IMPLEMENTED, str(error))
    shown = exposition.render(
        cluster_figures.read(DjangoDatabase()),
        request.headers.get("Accept", ""),
        request.headers.get("Accept-Encoding", ""),
    )
    response = HttpResponse(shown.body, content_type=shown.content_type)
    if shown.encoding:
        response["Content-Encoding"] = shown.encoding
    patch_vary_headers(response, ["Accept", "Accept-Encoding"])
    return response


@cache
def _exposition() -> Exposition:
    """One for the process, which remembers what it has shown."""
    return Exposition()
