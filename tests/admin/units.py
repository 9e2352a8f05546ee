"""Lists, forms and answers without the pages that show them, which cost most of what a
test of the admin takes."""

from __future__ import annotations

from inspect import unwrap
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import admin
from django.contrib.auth import get_user
from django.contrib.messages import get_messages
from django.contrib.messages.middleware import MessageMiddleware
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import resolve
from django.utils.http import urlencode

from tests.admin.pages import list_of, model_of, page_of, verb_of


def request_of(
    client: Client, address: str = "/", data: dict[str, Any] | None = None, **query: Any
) -> Any:
    """A request of this browser as a view gets it: a POST if there are data."""
    factory = RequestFactory()
    if query:
        address = f"{address}?{urlencode(query)}"
    request: Any = factory.get(address) if data is None else factory.post(address, data)
    request.session = client.session
    request.user = get_user(request)
    MessageMiddleware(lambda _request: HttpResponse()).process_request(request)
    request._dont_enforce_csrf_checks = True  # private: as Django's test client does
    return request


def answer(
    client: Client, address: str, data: dict[str, Any] | None = None, **query: Any
) -> Any:
    """What the view of this address answers, with its context, and not rendered."""
    found = resolve(address.partition("?")[0])
    request = request_of(client, address, data, **query)
    response = unwrap(found.func)(request, *found.args, **found.kwargs)
    response.wsgi_request = request  # as Django's test client has it
    return response


def context(client: Client, model: str, key: object, **query: Any) -> Any:
    """What the template of an object's page gets."""
    return answer(client, page_of(model, key), **query).context_data


def question(client: Client, model: str, verb: str, *keys: object) -> str:
    """What the page says that asks about these objects."""
    asked = answer(client, verb_of(model, verb), keys=joined(keys))
    found = asked.context_data["question"]
    return " ".join(map(str, (found.text, *found.facts, *found.warnings)))


def problems(client: Client, model: str, verb: str, *keys: object, **said: Any) -> str:
    """Why the form of the page that asks is refused."""
    said = {"keys": joined(keys), "confirmed": "1", **said}
    return errors_of(answer(client, verb_of(model, verb), said))


def errors_of(response: Any) -> str:
    """What the form of this answer complains about."""
    errors = response.context_data["form"].errors.as_data()
    return "\n".join(
        f"{name}: {message}"
        for name, found in errors.items()
        for error in found
        for message in error.messages
    )


def press(client: Client, address: str, **said: Any) -> str:
    """Post a form that is accepted; what the next page would tell."""
    client.cookies.pop("messages", None)  # what was told before, and not shown
    response = client.post(address, said)
    assert response.status_code == 302, (address, response.status_code)
    return told(response)


def told(response: Any) -> str:
    return " ".join(map(str, get_messages(response.wsgi_request)))


def act(client: Client, model: str, verb: str, *keys: object, **said: Any) -> str:
    """Press the button of the page that asks; what the next page would tell."""
    said = {"keys": joined(keys), "confirmed": "1", **said}
    return press(client, verb_of(model, verb), **said)


def joined(keys: tuple[object, ...]) -> str:
    """Keys as the page that asks sends them."""
    return "\n".join(map(str, keys))


def listing(client: Client, model: str, **query: Any) -> Any:
    """A list with these filters, as its template gets it."""
    page = admin.site.get_model_admin(model_of(model))
    request = request_of(client, list_of(model), **query)
    found = page.get_changelist_instance(request)
    found.notes = " ".join(map(str, get_messages(request)))  # what it tells above it
    return found


def shown(client: Client, model: str, **query: Any) -> list[str]:
    """The keys of the rows of a list with these filters, in order."""
    return [str(row.pk) for row in listing(client, model, **query).result_list]


def following(client: Client, model: str, link: str) -> Any:
    """The page of a list that one of its links leads to."""
    return listing(client, model, **dict(parse_qsl(link.removeprefix("?"))))


def buttons(client: Client, model: str, key: object) -> set[str]:
    """The names of the actions that the page of this object offers."""
    found = context(client, model, key)
    urls = (one.url for one in (*found["buttons"], *found["post_buttons"]))
    return {url.partition("?")[0].rstrip("/").rpartition("/")[2] for url in urls}
