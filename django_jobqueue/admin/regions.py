"""A refresh of an open page answers with the regions that changed, and nothing else.

The page asks for itself, and says in a header which regions it shows, in which version;
templates put each region between ``{% jq_region %}`` and ``{% endjq_region %}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from hashlib import blake2b
from typing import Any, Final

from django.contrib.messages import get_messages
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

HEADER: Final = "Jobqueue-Regions"  # "rows=9f2c…,pages=03ab…"
_CHANGED: Final = "_jobqueue_changed_regions"
_NAME: Final = re.compile(r'data-jq-region="([^"]+)"')
_TOKEN: Final = re.compile(r'(?<=name="csrfmiddlewaretoken" value=")[^"]*')

View = Callable[..., HttpResponse]


def is_refresh(request: HttpRequest) -> bool:
    """True if an open page asks what changed."""
    return request.method == "GET" and HEADER in request.headers


def marked(request: HttpRequest, html: str) -> str:
    """The HTML of a region with its version, which is noted if the page has another."""
    match = _NAME.search(html)
    if match is None:
        return html
    version = _version(html)
    html = f'{html[: match.end()]} data-jq-version="{version}"{html[match.end() :]}'
    if is_refresh(request) and _known(request).get(match[1]) != version:
        _changed(request).append(html)
    return html


def changed(request: HttpRequest) -> str:
    """The regions that were rendered and are not as the page has them."""
    return "\n".join(_changed(request))


def refreshed(view: View) -> View:
    """The view with a short answer to a refresh. Redirects and errors stay as they are,
    and messages wait for somebody who reads them."""

    @wraps(view)
    def short(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if not is_refresh(request):
            return response
        if isinstance(response, TemplateResponse) and response.status_code == 200:
            response.render()
            response.content = changed(request)
        messages: Any = get_messages(request)
        messages.used = messages.added_new = False
        return response

    return short


def _changed(request: HttpRequest) -> list[str]:
    if not hasattr(request, _CHANGED):
        setattr(request, _CHANGED, [])
    regions: list[str] = getattr(request, _CHANGED)
    return regions


def _known(request: HttpRequest) -> dict[str, str]:
    pairs = (part.partition("=") for part in request.headers[HEADER].split(","))
    return {name: version for name, _equals, version in pairs}


def _version(html: str) -> str:
    """A token of a form is another one each time, and says nothing."""
    text = _TOKEN.sub("", html)
    return blake2b(text.encode(), digest_size=8).hexdigest()
