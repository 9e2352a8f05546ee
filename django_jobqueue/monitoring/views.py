"""Metrics of the cluster, and the wanted slots of a queue, as pages of your site."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

from django.db import Error
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers

from django_jobqueue.exceptions import MetricsExtraMissing, StoreUnavailable
from django_jobqueue.metrics import cluster_figures
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.monitoring.access import for_monitoring, text
from django_jobqueue.stats.queue_load import queue_load
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.wanted_slots import wanted_slots_of


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


@for_monitoring
def scale(request: HttpRequest) -> HttpResponse:
    """The wanted slots of the queue that ``?queue=`` names, and its load, about this
    moment. An autoscaler keeps its replicas when it is answered with an error."""
    queue = request.GET.get("queue", "")
    if not queue or "\0" in queue:
        return text(HTTPStatus.BAD_REQUEST, "Name the queue: ?queue=default")
    try:
        db = DjangoDatabase()
        slots, load = wanted_slots_of(db, queue), queue_load(db, queue)
    except (StoreUnavailable, Error):
        return text(HTTPStatus.SERVICE_UNAVAILABLE, "The database does not answer.")
    return JsonResponse({"queue": queue, "wanted_slots": slots, **load._asdict()})


@cache
def _exposition() -> Exposition:
    """One for the process, which remembers what it has shown."""
    return Exposition()
