"""The reference names what there is, and nothing else; links lead somewhere."""

from __future__ import annotations

import builtins
import pkgutil
import re
import tomllib
from typing import Any

from django.dispatch import Signal

import django_jobqueue
from django_jobqueue import exceptions, operations, rooms, signals, testing
from django_jobqueue.conf import Conf
from django_jobqueue.contrib.alerts import signals as alert_signals
from django_jobqueue.domain.job_options import OF_TYPE
from django_jobqueue.management.commands.jobqueue import SUBCOMMANDS
from django_jobqueue.retries import POLICIES
from tests.docs.pages import ROOT, pages

BACKPORT = "django-tasks"
MODELS = sorted(
    (model for model in rooms.models() if not model._meta.proxy),
    key=lambda model: model.__name__,
)
INDEXED = (
    "https://github.com/django-jobqueue/django-jobqueue/blob/main/",
    "https://raw.githubusercontent.com/django-jobqueue/django-jobqueue/main/",
)


def project() -> dict[str, Any]:
    """What ``pyproject.toml`` says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_page_of_job_options_has_every_option_of_a_job_type_once() -> None:
    text = pages()["docs/reference/job-options.md"]
    listed = text.partition("{jobqueue-options}\n")[2].partition("::::")[0]
    named = re.findall(r"^(\w+): ", listed, re.M)
    assert sorted(named) == sorted(["name", *OF_TYPE])


def listed(directive: str) -> dict[str, dict[str, str]]:
    """The names that the blocks of a directive describe, with their text, by the
    argument of the block; blocks without an argument are one."""
    found: dict[str, dict[str, str]] = {}
    block = re.compile(rf"^:::+\{{{directive}\}} ?([^\n]*)\n(.*?)^:::+$", re.M | re.S)
    for text in pages().values():
        for argument, content in block.findall(text):
            lines = re.sub(r"\n +", " ", content).splitlines()
            pairs = [line.partition(":")[::2] for line in lines if line.strip()]
            described = found.setdefault(argument, {})
            assert not {name for name, _ in pairs} & described.keys(), argument
            described |= {name.strip(): text.strip() for name, text in pairs}
    return found


def test_every_setting_is_described() -> None:
    described = listed("jobqueue-settings")[""].keys()
    settings = Conf.settings.keys()
    assert settings - described == set(), "add them to docs/reference/settings.md"
    assert described - settings == set(), "remove them from docs/reference/settings.md"


def test_every_column_and_index_is_described() -> None:
    """A column by the page, or by the help text of its field."""
    columns_of, indexes_of = listed("jobqueue-columns"), listed("jobqueue-indexes")
    for model in MODELS:
        described = columns_of.get(model.__name__, {})
        columns = {f.column: f for f in model._meta.concrete_fields if f.column}
        place = f"{model.__name__} in docs/reference/schema.md"
        assert columns.keys() == described.keys(), f"list the columns of {place}"
        unsaid = [n for n, f in columns.items() if not (described[n] or f.help_text)]
        assert unsaid == [], f"say what they mean in {place}, or in their help_text"
        indexes = indexes_of.get(model.__name__, {})
        names = {index.name for index in model._meta.indexes}
        assert names == indexes.keys(), f"list the indexes of {place}"
        assert all(indexes.values()), f"say what each index is for in {place}"


def test_every_command_shows_its_help() -> None:
    shown = listed("jobqueue-help").keys()
    commands = {"runworkers", *(f"jobqueue {name}" for name in SUBCOMMANDS)}
    assert commands - shown == set(), "show them in docs/reference/commands.md"


def test_the_named_backoff_policies_are_those_of_the_docs() -> None:
    """The table of the guide, and the text that an editor shows."""
    guide = pages()["docs/guides/retries.md"].partition("## Waits")[2]
    table = guide.partition("| name |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.M) == list(POLICIES), (
        "the table of Waits in docs/guides/retries.md must list NAMED of retries.py"
    )
    source = (ROOT / "django_jobqueue" / "enqueueing" / "options.py").read_text()
    option = source.partition("backoff: str | timedelta | float | Backoff")[2]
    shown = re.findall(r"``(\w+)``", option.split('"""')[1])
    assert shown == list(POLICIES), (
        "the docstring of backoff in enqueueing/options.py must list the same"
    )


def test_links_between_files_lead_somewhere() -> None:
    for page, text in pages().items():
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in target:
                assert (ROOT / page).parent.joinpath(target).exists(), (page, target)


def test_every_guide_is_named_where_people_begin() -> None:
    guides = {path.name for path in (ROOT / "docs" / "guides").glob("*.md")}
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text().partition("{toctree}")[0]
        assert {name for name in guides if f"guides/{name}" not in text} == set(), page


def test_the_readme_reads_the_same_on_a_package_index() -> None:
    """An index resolves no relative link, gives headings no anchors and shows no file
    of the repository."""
    hidden = r"^```.*?^```$|^<!--.*?-->$"
    text = re.sub(hidden, "", pages()["README.md"], flags=re.M | re.S)
    defined = dict(re.findall(r"^\[([^\]]+)\]: (\S+)$", text, re.M))
    inline = re.findall(r"\]\(([^)\s]+)", text)
    named = re.findall(r"\[([^\]`]+)\](?![\[(:])", re.sub(r"`[^`]*`", "", text))
    unknown = {name for name in named if name.lower() not in defined}
    assert unknown == set()
    outside = [to for to in (*inline, *defined.values()) if not to.startswith(INDEXED)]
    assert outside == []
    for target in defined.values():
        path = re.sub(r"^https://[^/]+/[^/]+/[^/]+/(?:blob/)?main/", "", target)
        assert (ROOT / path).is_file(), target


def test_the_package_says_where_its_source_documentation_and_issues_are() -> None:
    urls = project()["project"]["urls"]
    source = urls["Source"]
    assert list(urls) == ["Source", "Documentation", "Issues", "Changelog"]
    assert INDEXED[0].startswith(f"{source}/")
    assert all(url == source or url.startswith(f"{source}/") for url in urls.values())


def test_whoever_builds_the_documentation_has_what_it_imports() -> None:
    """Where pip chooses Django 5.2, which has no tasks of its own, the reference of the
    backend needs the backport."""
    extras = project()["project"]["optional-dependencies"]
    for name in ("docs", "test"):
        markers = [line.partition(";")[2] for line in extras[name] if BACKPORT in line]
        assert markers == [" python_version < '3.12'"], name


def test_the_names_that_pages_link_to_elsewhere_exist() -> None:
    for name in ("python", "django"):
        inventory = ROOT / "docs" / "inventories" / f"{name}.txt"
        lines = inventory.read_text().splitlines()
        assert lines[0] == "# Sphinx inventory version 1"
        for line in lines[3:]:
            linked, _kind, page = line.split()
            assert hasattr(builtins, linked) or pkgutil.resolve_name(linked), line
            assert page.endswith((".html", "/")), line


def test_every_check_is_described() -> None:
    source = "".join(
        path.read_text() for path in (ROOT / "django_jobqueue").rglob("*.py")
    )
    described = re.findall(r"^### (\S+)$", pages()["docs/reference/checks.md"], re.M)
    assert sorted(described) == sorted(set(re.findall(r"jobqueue\.[EW]\d{3}", source)))


def test_every_error_is_described() -> None:
    page = pages()["docs/reference/errors.md"]
    for name, value in vars(exceptions).items():
        if isinstance(value, type) and issubclass(value, Exception):
            assert f"`{name}" in page or name in ("JobQueueError", "JobControl"), name


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
    every = {**vars(signals), **vars(alert_signals)}
    sent = [name for name, value in every.items() if isinstance(value, Signal)]
    assert sorted(found) == sorted(sent)


def test_every_verb_of_operators_is_described() -> None:
    page = pages()["docs/reference/api.md"]
    for name in operations.__all__:
        assert f".. autofunction:: {name}\n" in page, name


def test_every_file_that_a_page_names_is_there() -> None:
    names = {
        (page, name)
        for page, text in pages().items()
        if page.startswith("docs/explanation/")
        for name in re.findall(r"`(?:django_jobqueue/)?([a-z_]+/[a-z_/]+\.py)`", text)
    }
    assert names
    places = (ROOT / "django_jobqueue", ROOT)
    gone = [(p, n) for p, n in names if not any((at / n).exists() for at in places)]
    assert gone == []


def test_the_drawings_of_the_rooms_are_the_contracts_of_imports() -> None:
    contracts = project()["tool"]["importlinter"]["contracts"]
    architecture = pages()["docs/explanation/architecture.md"]
    for contract, before in (
        ("Imports point down", "## The rooms"),
        ("Inside a worker", "`workers/`, from top to bottom:"),
        ("Inside a host", "`host/`, from top to bottom:"),
        ("Inside the store", "`store/`, from top to bottom:"),
    ):
        (layers,) = (c["layers"] for c in contracts if c["name"] == contract)
        rooms = architecture.partition(before)[2]
        drawing = rooms.partition("```text\n")[2].partition("\n```")[0]
        drawn = [re.split(r"\s{2,}", line)[0] for line in drawing.splitlines()]
        assert drawn == [layer.replace("|", "│") for layer in layers], contract
