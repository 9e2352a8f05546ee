"""The reference names what there is, and nothing else; links lead somewhere."""

from __future__ import annotations

import re
import tomllib

from django.dispatch import Signal

import django_jobqueue
from django_jobqueue import exceptions, signals, testing, triage
from tests.docs.pages import ROOT, pages


def test_links_between_files_lead_somewhere() -> None:
    for page, text in pages().items():
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target:
                assert (ROOT / page).parent.joinpath(target).exists(), (page, target)


def test_every_check_is_described() -> None:
    files = ("checks.py", "backends/configured.py")
    source = "".join((ROOT / "django_jobqueue" / f).read_text() for f in files)
    described = re.findall(r"^### (\S+)$", pages()["docs/reference/checks.md"], re.M)
    assert sorted(described) == sorted(set(re.findall(r"jobqueue\.[EW]\d{3}", source)))


def test_every_error_is_described() -> None:
    page = pages()["docs/reference/errors.md"]
    for name, value in vars(exceptions).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert f"`{name}" in page or name in ("JobQueueError", "HandlerWord"), name


def test_every_public_name_is_described() -> None:
    described = pages()["docs/reference/api.md"] + pages()["docs/reference/errors.md"]
    for name in django_jobqueue.__all__:
        assert re.search(rf"\b{name}\b", described), name


def test_every_name_for_tests_is_described() -> None:
    page = pages()["docs/reference/api.md"].partition("## Testing")[2]
    ours = set(testing.__all__) - {"Outcome", "Verb"}  # of handlers
    for name in ours:
        assert re.search(rf"\b{name}\b", page), name


def test_every_signal_is_described() -> None:
    page = pages()["docs/reference/signals.md"]
    found = re.findall(r"^\| `(\w+)` \| .* \| `", page, re.M)
    sent = [name for name, value in vars(signals).items() if isinstance(value, Signal)]
    assert sorted(found) == sorted(sent)


def test_every_verb_of_operators_is_described() -> None:
    page = pages()["docs/reference/api.md"]
    for name in triage.__all__:
        assert f".. autofunction:: {name}\n" in page, name


def test_the_drawing_of_the_rooms_is_the_contract_of_imports() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c["type"] == "layers")
    rooms = pages()["docs/explanation/architecture.md"].partition("## The rooms")[2]
    drawing = rooms.partition("```text\n")[2].partition("\n```")[0]
    drawn = [re.split(r"\s{2,}", line)[0] for line in drawing.splitlines()]
    assert drawn == [layer.replace("|", "│") for layer in layers]
