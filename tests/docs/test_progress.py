"""The example of the guide to progress, as files of a project."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from django_jobqueue.domain.registry import registry
from tests.admin.pages import Page
from tests.architecture.source import PACKAGE
from tests.docs.pages import pages
from tests.support.hand_driven import HandDriven

GUIDE = pages()["docs/guides/progress.md"]
FILE = re.compile(
    r"`(accounts/[\w./]+)`[^\n]*(?:\n[^\n]+)?:\n+(?:<!-- run -->\n)?```\w+\n(.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture
def project(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The files that the guide shows, in the places that it names."""
    files = dict(FILE.findall(GUIDE))
    assert len(files) == 4
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "accounts" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    settings.ROOT_URLCONF = "accounts.urls"
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": [tmp_path / "accounts" / "templates"]}]
    before = {declaration.name for declaration in registry}
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "accounts"]:
        monkeypatch.delitem(sys.modules, name)
    for declaration in registry:
        if declaration.name not in before:
            registry.remove(declaration.name)


def test_the_example_of_the_guide_works(
    project: None, make_worker: Callable[..., HandDriven], client: Client
) -> None:
    page = Page(client.get("/import/").content.decode())
    assert not page.all("job-progress")
    response = client.post("/import/start/", {"names": "anna ben"}, follow=True)
    page = Page(response.content.decode())
    (element,) = page.all("job-progress")
    assert "Your users" in page.text
    assert "waiting" in page.text
    assert "data-reload" in element
    visitor = Client()
    address = str(element["data-url"])
    assert visitor.get(address).json()["status"] == "queued"
    make_worker(threads=1).work()
    answer = visitor.get(address).json()
    assert (answer["status"], answer["text"]) == ("succeeded", "2 of 2 (100 %)")
    assert answer["note"] == "ben is imported"
    assert User.objects.filter(username__in=["anna", "ben"]).count() == 2
    page = Page(client.get("/import/").content.decode())
    assert "done 2 of 2 (100 %) ben is imported" in page.text
    assert "data-url" not in page.all("job-progress")[0]


def test_the_guide_names_what_the_script_fills() -> None:
    source = (PACKAGE / "static" / "django_jobqueue" / "progress.js").read_text()
    filled = set(re.findall(r"\[data-job-\w+\]", source))
    assert filled == set(re.findall(r"`(\[data-job-\w+\])`", GUIDE))
