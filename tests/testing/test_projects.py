"""Projects of their own: on PostgreSQL, with the examples of the guide "Testing your
jobs"; on SQLite; and without Django."""

from __future__ import annotations

import os
import re
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from django.db import connection

from tests.docs.pages import examples, pages
from tests.support.commands import ROOT
from tests.testing import project

GUIDE = "docs/guides/testing.md"
PLUGIN = "django_jobqueue.testing.pytest_plugin"
# No others of those that are installed here: to import them takes longer than the rest.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
PYTEST = ("-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN)
WITH_DJANGO = (*PYTEST, "-p", "pytest_django.plugin", "--strict-markers")


def files_of_the_guide() -> dict[str, str]:
    """The files of the project that the page shows, bit by bit."""
    found: dict[str, str] = defaultdict(str)
    for example in examples(GUIDE):
        if example.language == "python":
            name = re.match(r"# (\S+\.py)\n", example.text)
            assert name is not None, f"{example} says of no file that it is in it"
            found[name[1]] += example.text
    return found


def count_of_tests(text: str) -> int:
    return len(re.findall(r"^\s*def test_", text, re.MULTILINE))


ON_POSTGRES = """
from testproject.postgres import database_settings
import os
DATABASES = {"default": database_settings(os.environ["DATABASE_URL"])}
DATABASES["default"]["TEST"] = {"NAME": os.environ["TEST_NAME"]}
JOBQUEUE = {"POLL_INTERVAL": 0.2}
ROOT_URLCONF = "urls"
STATIC_URL = "static/"
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
"""
FIXTURES_AND_MARKS = """
import pytest
from django.contrib.auth.models import User
from shop.greeting import greet

@pytest.mark.jobqueue(MODE="immediate")
@pytest.mark.django_db
class TestImmediate:
    def test_one(self):
        assert greet.enqueue("anna").status == "succeeded"

    def test_no_test_sees_jobs_of_another(self, jobqueue):
        jobqueue.assert_not_enqueued(greet)

    @pytest.mark.jobqueue(MODE="on_commit")
    def test_the_nearest_mark_wins(self, jobqueue):
        assert greet.enqueue("anna").status == "queued"
        jobqueue.drain()
        jobqueue.assert_enqueued(greet, status="succeeded")

@pytest.mark.jobqueue_worker(queues=["mail"], threads=1, async_slots=0)
def test_a_worker_with_options(jobqueue_worker, jobqueue):
    greet.enqueue("anna")
    greet.using(queue="mail").enqueue("ben")
    jobqueue_worker.wait_idle(20)
    assert User.objects.get().username == "ben"
"""
WRONG_MARKS = """
import pytest

@pytest.mark.parametrize("number", [
    pytest.param(0, marks=pytest.mark.jobqueue(MODE="imediate")),
    pytest.param(1, marks=pytest.mark.jobqueue(MDOE="immediate")),
    pytest.param(2, marks=pytest.mark.jobqueue(mode="immediate")),
    pytest.param(3, marks=pytest.mark.jobqueue("immediate")),
    pytest.param(4, marks=pytest.mark.jobqueue(LEASE="15")),
])
def test_it(number):
    pass
"""
WRONG = (
    "The mark jobqueue: MODE must be queue, immediate or on_commit, not 'imediate'",
    "The mark jobqueue has no argument 'MDOE'. Did you mean 'MODE'?",
    "The mark jobqueue has no argument 'mode'. Write MODE=….",
    "The mark jobqueue takes settings by name, not 'immediate'.",
    "The mark jobqueue: LEASE must be a number of seconds, not '15'.",
)
TOLD = """
import pytest
from shop.jobs import send_receipt

def test_it(jobqueue, db):
    send_receipt.enqueue(7)
    with pytest.raises(AssertionError) as told:
        jobqueue.assert_enqueued(send_receipt, data={{"order_id": 8}})
    assert str(told.value) == {text!r}
"""


def write_guide(folder: Path) -> dict[str, str]:
    """Make the project of the guide; returns the files that it shows."""
    shown = files_of_the_guide()
    settings = project.SETTINGS + ON_POSTGRES + shown.pop("mysite/settings.py", "")
    ours = {
        "mysite/__init__.py": "",
        "mysite/settings.py": settings,
        "urls.py": "urlpatterns = []\n",
        "shop/greeting.py": project.JOBS,
    }
    project.make(folder, {**ours, **shown}, settings="")
    return shown


@pytest.mark.processes
def test_the_examples_of_the_guide_and_the_fixtures_and_marks_of_the_plugin(
    tmp_path: Path, db: None
) -> None:
    """The failure that the guide shows is what a test is told, too."""
    shown = write_guide(tmp_path)
    text = re.search(r"```text\nAssertionError: (.*?)```", pages()[GUIDE], re.DOTALL)
    assert text is not None
    more = {
        "test_told.py": TOLD.format(text=text[1].rstrip()),
        "test_fixtures.py": FIXTURES_AND_MARKS,
        "test_wrong_marks.py": WRONG_MARKS,
    }
    for name, content in more.items():
        (tmp_path / "tests" / name).write_text(content)
    count = sum(count_of_tests(t) for n, t in shown.items() if n != "tests/fast.py")
    assert count >= 14
    done = project.run(
        tmp_path,
        *(*WITH_DJANGO, "--ds=mysite.settings", "tests"),
        **ALONE,
        DATABASE_URL=os.environ["DATABASE_URL"],
        TEST_NAME=f"{connection.settings_dict['NAME']}_project",
    )
    assert f"\n{count + 5} passed, {len(WRONG)} errors in" in done.stdout, done.stdout
    assert [text for text in WRONG if text not in done.stdout] == []


WITH_ADMIN = """
INSTALLED_APPS += [
    "django.contrib.admin", "django.contrib.messages", "django.contrib.sessions",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
NAMES = "django.contrib.auth", "django.contrib.messages"
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request",
        *(f"{name}.context_processors.{name.rpartition('.')[2]}" for name in NAMES),
    ]},
}]
ROOT_URLCONF = "urls"
STATIC_URL = "static/"
MAILERS = {"default": {"BACKEND": "django.core.mail.backends.locmem.EmailBackend"}}
"""
URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""
TESTS = """
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import TestCase, TransactionTestCase

from django_jobqueue import get_job
from django_jobqueue.testing import JobQueueTestMixin
from shop.greeting import greet

class Greeting(JobQueueTestMixin, TestCase):
    def test_it(self):
        job = greet.enqueue("anna")
        self.assert_enqueued(greet, status="succeeded")
        self.assertEqual(get_job(job.id).result, "Hello, anna!")
        self.assertTrue(User.objects.filter(username="anna").exists())
        names = connection.introspection.table_names()
        self.assertFalse([n for n in names if n.startswith("jobqueue_")])

class Visit(TestCase):
    def test_the_admin_offers_no_pages_of_tables_that_are_not_there(self):
        self.client.force_login(User.objects.create_superuser("anna"))
        page = self.client.get("/admin/")
        self.assertContains(page, "/admin/auth/user/")
        self.assertNotContains(page, "/admin/jobqueue/")

class Committed(TransactionTestCase):
    serialized_rollback = True

    def test_it(self):
        self.assertEqual(greet.enqueue("ben").status, "succeeded")

    def test_migrations_are_undone(self):
        for name in ("0001", "zero"):
            call_command("migrate", "jobqueue", name, verbosity=0)
        call_command("migrate", verbosity=0)
        call_command("makemigrations", check=True, verbosity=0)
"""


@pytest.mark.processes
def test_a_project_on_sqlite_migrates_and_runs_its_tests(tmp_path: Path) -> None:
    """Those of the guide among them, and a visit to the admin."""
    shown = write_guide(tmp_path)
    for name, text in (
        ("mysite/settings.py", project.SETTINGS),
        ("mysite/fast_settings.py", shown["mysite/fast_settings.py"] + WITH_ADMIN),
        ("urls.py", URLS),
        ("tests/test_more.py", TESTS),
    ):
        (tmp_path / name).write_text(text)
    files = ("tests/fast.py", "tests/test_more.py")
    settings = "--ds=mysite.fast_settings"
    done = project.run(tmp_path, *WITH_DJANGO, settings, *files, **ALONE)
    count = count_of_tests(shown["tests/fast.py"] + TESTS)
    assert f"\n{count} passed in" in done.stdout, done.stdout + done.stderr
    assert count >= 5


@pytest.mark.processes
def test_the_plugin_harms_no_project_without_django(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    from django.conf import settings\n"
        "    assert not settings.configured\n"
        "    assert 'django_jobqueue.models' not in sys.modules\n"
    )
    done = project.run(tmp_path, *PYTEST, **ALONE, DJANGO_SETTINGS_MODULE="")
    assert done.returncode == 0, done.stdout + done.stderr


def test_pytest_finds_the_plugin_where_the_package_is_installed() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    points = tomllib.loads(text)["project"]["entry-points"]
    assert points["pytest11"] == {"jobqueue": PLUGIN}
