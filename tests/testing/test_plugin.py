"""The pytest plugin and the mixins, in projects of their own."""

from __future__ import annotations

import os
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from django.db import connection

from tests.support.commands import ROOT
from tests.testing import project

POSTGRES = """
from testproject.postgres import database_settings
import os
DATABASES = {"default": database_settings(os.environ["DATABASE_URL"])}
DATABASES["default"]["TEST"] = {"NAME": os.environ["TEST_NAME"]}
JOBQUEUE = {"POLL_INTERVAL": 0.2}
"""
NAME = "django_jobqueue.testing.pytest_plugin"
INSTALLED = entry_points(group="pytest11", value=NAME)
PLUGIN = () if INSTALLED else ("-p", NAME)  # pytest finds it if it is installed
PYTEST = ("-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN)


@pytest.fixture
def on_postgres(db: None) -> dict[str, str]:
    """The environment of a project whose tests have a database of their own, also
    beside those of pytest-xdist's other processes."""
    name = f"{connection.settings_dict['NAME']}_plugin"
    return {"DATABASE_URL": os.environ["DATABASE_URL"], "TEST_NAME": name}


WITH_PYTEST = """
import pytest
from datetime import timedelta
from django.contrib.auth.models import User
from shop.jobs import greet

@pytest.mark.django_db
def test_drain(jobqueue):
    with jobqueue.captured_jobs() as jobs, jobqueue.clock() as time:
        greet.using(run_after=timedelta(hours=1)).enqueue("anna")
        assert jobqueue.drain() == []
        time.move(hours=1)
        assert len(jobqueue.drain()) == len(jobs) == 1
    jobqueue.assert_enqueued(greet, data={"name": "anna"}, status="succeeded")
    assert User.objects.get().username == "anna"

def test_perform_and_no_database(jobqueue):
    assert jobqueue.perform(greet, {"name": "anna"}).verb.value == "retry"

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

def test_a_worker(jobqueue_worker, jobqueue):
    greet.enqueue("anna")
    jobqueue_worker.wait_idle(20)
    assert User.objects.get().username == "anna"

@pytest.mark.jobqueue_worker(queues=["mail"], threads=1, async_slots=0)
def test_a_worker_with_options(jobqueue_worker, jobqueue):
    greet.enqueue("anna")
    greet.using(queue="mail").enqueue("ben")
    jobqueue_worker.wait_idle(20)
    assert User.objects.get().username == "ben"
"""


@pytest.mark.processes
def test_the_fixtures_and_marks(tmp_path: Path, on_postgres: dict[str, str]) -> None:
    project.make(tmp_path, {"test_shop.py": WITH_PYTEST}, settings=POSTGRES)
    done = project.run(tmp_path, *PYTEST, "--strict-markers", **on_postgres)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "7 passed" in done.stdout


WITH_WRONG_MARKS = """
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


def test_a_mark_that_changes_no_setting_is_an_error(tmp_path: Path) -> None:
    files = {"test_shop.py": WITH_WRONG_MARKS}
    project.make(tmp_path, files, settings=project.SQLITE)
    done = project.run(tmp_path, *PYTEST, "--strict-markers")
    assert "5 errors" in done.stdout
    for text in (
        "The mark jobqueue: MODE must be queue, immediate or on_commit, not 'imediate'",
        "The mark jobqueue has no argument 'MDOE'. Did you mean 'MODE'?",
        "The mark jobqueue has no argument 'mode'. Write MODE=….",
        "The mark jobqueue takes settings by name, not 'immediate'.",
        "The mark jobqueue: LEASE must be a number of seconds, not '15'.",
    ):
        assert text in done.stdout


WITH_UNITTEST = """
from django.contrib.auth.models import User
from django.test import LiveServerTestCase, TestCase, override_settings
from django_jobqueue.testing import JobQueueTestMixin, WorkerMixin
from shop.jobs import greet

class Greeting(JobQueueTestMixin, TestCase):
    def test_drain(self):
        greet.enqueue("anna")
        self.assert_enqueued(greet, data={"name": "anna"})
        self.assertEqual([ran.verb for ran in self.drain()], ["succeed"])

    async def test_async(self):
        await greet.aenqueue("anna")
        self.assertEqual(len(await self.adrain()), 1)

    @override_settings(JOBQUEUE={"MODE": "immediate"})
    def test_at_once(self):
        greet.enqueue("anna")
        self.assert_enqueued(greet, status="succeeded")

    @override_settings(JOBQUEUE={"MODE": "immediate"})
    def test_no_test_sees_jobs_of_another(self):
        self.assert_not_enqueued(greet)

class Live(JobQueueTestMixin, WorkerMixin, LiveServerTestCase):
    jobqueue_worker_options = {"threads": 1}

    def test_worker(self):
        for name in ("anna", "ben"):
            greet.enqueue(name)
        self.jobqueue_worker.wait_idle(20)
        self.assertEqual(User.objects.count(), 2)
"""
URLS = "urlpatterns = []\n"


@pytest.mark.processes
def test_the_mixins(tmp_path: Path, on_postgres: dict[str, str]) -> None:
    settings = POSTGRES + 'ROOT_URLCONF = "urls"\nSTATIC_URL = "static/"\n'
    files = {"shop/tests.py": WITH_UNITTEST, "urls.py": URLS}
    project.make(tmp_path, files, settings=settings)
    done = project.run(
        tmp_path, "-W", "error", "-m", "django", "test", "--noinput", **on_postgres
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 5 tests" in done.stderr


def test_the_plugin_harms_no_project_without_django(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "def test_it():\n"
        "    from django.conf import settings\n"
        "    assert not settings.configured\n"
        "    assert 'django_jobqueue.models' not in sys.modules\n"
    )
    done = project.run(tmp_path, *PYTEST, "-p", "no:django", DJANGO_SETTINGS_MODULE="")
    assert done.returncode == 0, done.stdout + done.stderr


def test_pytest_finds_the_plugin_where_the_package_is_installed() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    points = tomllib.loads(text)["project"]["entry-points"]
    assert points["pytest11"] == {"jobqueue": NAME}


TWO = """
DATABASES["jobs"] = DATABASES["default"]
DATABASES["default"] = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
JOBQUEUE = {"DATABASE": "jobs"}
"""
WITH_TWO = """
from datetime import timedelta
import pytest
from django.contrib.auth.models import User
from django.db import transaction
from shop.jobs import greet

@pytest.mark.parametrize("committed", [False, True])
def test_it(request, committed):
    mark = pytest.mark.django_db(databases=["default", "jobs"], transaction=committed)
    request.applymarker(mark)
    request.getfixturevalue("transactional_db" if committed else "db")
    jobqueue = request.getfixturevalue("jobqueue")
    transaction.on_commit(lambda: greet.enqueue("anna"))
    greet.using(run_after=timedelta(hours=1)).enqueue("ben")
    greet.enqueue("anna")
    ran = jobqueue.drain(until=timedelta(hours=2), raise_errors=False)
    assert sorted(one.verb for one in ran)[-2:] == ["succeed", "succeed"]
    assert set(User.objects.values_list("username", flat=True)) == {"anna", "ben"}
    jobqueue.assert_enqueued(greet, data={"name": "ben"}, status="succeeded")
"""


@pytest.mark.processes
def test_the_jobs_may_be_in_another_database(
    tmp_path: Path, on_postgres: dict[str, str]
) -> None:
    project.make(tmp_path, {"test_shop.py": WITH_TWO}, settings=POSTGRES + TWO)
    done = project.run(tmp_path, *PYTEST, **on_postgres)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
