"""The API's answer if its extra is not installed."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

SENTENCE = (
    'The HTTP API needs django-ninja. Install it: pip install "django-jobqueue[http]"'
)


def no_extra(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """501, with the line of pip."""
    return HttpResponse(f"{SENTENCE}\n", status=501, content_type="text/plain")
