"""Pages as a browser sees them: addresses, elements, text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from django.contrib.admin.utils import quote
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_jobqueue.rooms import models

MODELS = (
    *("archivedjob", "failuregroup", "jobtype", "queue", "queuedjob", "schedule"),
    *("host", "keylimit", "lease", "token", "worker"),
)

RAW = ("pre", "textarea", "script", "style", "code", "option")
SAID = ("title", "aria-label")  # attributes that are read to people
FRAME = re.compile(
    r"SAVEPOINT|RELEASE|ROLLBACK|\s*SELECT set_config\('statement_timeout'", re.ASCII
)


def model_of(name: str) -> Any:
    """The model of some room."""
    return next(one for one in models() if one._meta.model_name == name)


def table_of(model: str) -> str:
    """The table of a model; also what the names of its addresses begin with."""
    return f"{model_of(model)._meta.app_label}_{model}"


def list_of(model: str) -> str:
    return reverse(f"admin:{table_of(model)}_changelist")


def page_of(model: str, key: object) -> str:
    return reverse(f"admin:{table_of(model)}_change", args=[quote(key)])


def verb_of(model: str, verb: str) -> str:
    return reverse(f"admin:{table_of(model)}_{verb}")


@dataclass
class Page(HTMLParser):
    html: str
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)  # without code and values of jobs
    _goes_on: bool = False
    _raw: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.html)

    def updatepos(self, i: int, j: int) -> int:
        return j  # nobody asks in which line an element stands

    def __hash__(self) -> int:
        return id(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.shown += [value or "" for name, value in attrs if name in SAID]
        self._goes_on = tag == "wbr"
        self._raw += tag in RAW

    def handle_endtag(self, tag: str) -> None:
        self._raw -= tag in RAW

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.shown.append(" ".join(data.split()))
        if self._goes_on and self.texts:
            self.texts[-1] += data  # the same word, which may be broken here
        else:
            self.texts.append(data)
        self._goes_on = False

    @property
    def text(self) -> str:
        """All that can be read, with single spaces."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        """The attributes of every element with this name and these attributes."""
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and attributes.items() <= attrs.items()
        ]

    @property
    def links(self) -> list[str]:
        return [attrs["href"] or "" for attrs in self.all("a") if "href" in attrs]

    @property
    def rows(self) -> list[str]:
        """The keys of the rows of a list, where they can be selected."""
        return [str(box["value"]) for box in self.all("input", name="_selected_action")]


def tabs_of(page: Page) -> dict[str, bool]:
    """Where the tabs of a page lead, and whether it is the page itself."""
    return {
        str(one["href"]): one.get("aria-current") == "page"
        for one in page.all("a")
        if "data-jq-key" in one
    }


def current_tabs(page: Page) -> list[str]:
    return [address for address, is_current in tabs_of(page).items() if is_current]


def statements(captured: CaptureQueriesContext) -> list[str]:
    """What was asked for, without what begins, ends and bounds a transaction."""
    found = [one["sql"] for one in captured.captured_queries]
    return [sql for sql in found if not FRAME.match(sql)]


def get(client: Client, address: str, *, code: int = 200, **query: Any) -> Page:
    response = client.get(address, query)
    assert response.status_code == code, (address, query, response.status_code)
    return Page(response.content.decode())


def post(client: Client, address: str, data: dict[str, Any], status: int = 200) -> Page:
    """What comes back for a form, after redirects."""
    response = client.post(address, data, follow=True)
    assert response.status_code == status, (address, response.status_code)
    return Page(response.content.decode())


def select(client: Client, model: str, verb: str, *keys: object, **more: Any) -> Page:
    """Choose a verb in the menu of a list, for these rows."""
    data = {
        "action": verb,
        "index": 0,
        "_selected_action": [str(key) for key in keys],
        **more,
    }
    return post(client, list_of(model), data)


def confirm(client: Client, model: str, verb: str, *keys: object, **said: Any) -> Page:
    """Press the button of the page that asks."""
    data = {"keys": "\n".join(map(str, keys)), "confirmed": "1", **said}
    return post(client, verb_of(model, verb), data)
