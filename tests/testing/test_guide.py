"""The guide "Testing your jobs": its examples are the files of a project, and pass."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.docs.pages import examples, pages
from tests.testing import project
from tests.testing.test_plugin import POSTGRES, PYTEST, on_postgres

__all__ = ["on_postgres"]

PAGE = "docs/guides/testing.md"
FILE = re.compile(r"# (\S+\.py)\n")
MORE = """
ROOT_URLCONF = "urls"
STATIC_URL = "static/"
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
"""
SETTINGS = project.SETTINGS + POSTGRES + MORE


def files() -> dict[str, str]:
    """The files of the project that the page shows, bit by bit."""
    found: dict[str, str] = defaultdict(str)
    for example in examples(PAGE):
        if example.language == "python":
            name = FILE.match(example.text)
            assert name is not None, f"{example} says of no file that it is in it"
            found[name[1]] += example.text
    return found


def write(folder: Path) -> None:
    """Make the project."""
    shown = files()
    shown["mysite/settings.py"] = SETTINGS + shown.get("mysite/settings.py", "")
    ours = {"mysite/__init__.py": "", "urls.py": "urlpatterns = []\n"}
    project.make(folder, {**ours, **shown}, settings="")


def count_of_tests(text: str) -> int:
    return len(re.findall(r"^\s*def test_", text, re.MULTILINE))


@pytest.mark.processes
def test_every_example_of_the_guide_passes(
    tmp_path: Path, on_postgres: dict[str, str]
) -> None:
    write(tmp_path)
    count = sum(
        count_of_tests(t) for name, t in files().items() if name != "tests/fast.py"
    )
    done = project.run(
        tmp_path, *PYTEST, "--ds=mysite.settings", "tests", **on_postgres
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} passed" in done.stdout
    assert count >= 14


@pytest.mark.processes
def test_the_examples_without_a_queue_pass_on_sqlite(
    tmp_path: Path, on_postgres: dict[str, str]
) -> None:
    write(tmp_path)
    done = project.run(
        tmp_path, *PYTEST, "--ds=mysite.fast_settings", "tests/fast.py", **on_postgres
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count_of_tests(files()['tests/fast.py'])} passed" in done.stdout


@pytest.mark.processes
def test_the_failure_that_the_guide_shows_is_what_a_test_is_told(
    tmp_path: Path, on_postgres: dict[str, str]
) -> None:
    shown = re.search(r"```text\nAssertionError: (.*?)```", pages()[PAGE], re.DOTALL)
    assert shown is not None
    write(tmp_path)
    (tmp_path / "tests" / "test_told.py").write_text(
        "import pytest\n"
        "from shop.jobs import send_receipt\n"
        "def test_it(jobqueue, db):\n"
        "    send_receipt.enqueue(7)\n"
        "    with pytest.raises(AssertionError) as told:\n"
        '        jobqueue.assert_enqueued(send_receipt, data={"order_id": 8})\n'
        f"    assert str(told.value) == {shown[1].rstrip()!r}\n"
    )
    done = project.run(
        tmp_path, *PYTEST, "--ds=mysite.settings", "tests/test_told.py", **on_postgres
    )
    assert done.returncode == 0, done.stdout + done.stderr
