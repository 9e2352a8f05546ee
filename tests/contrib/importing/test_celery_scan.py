"""``jobqueue import celery --scan``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from django_jobqueue.contrib.importing.celery_options import ADVICE
from django_jobqueue.contrib.importing.celery_scan import Finding, scan
from django_jobqueue.domain.schedule_rules import parse
from tests.architecture.source import parsed
from tests.commands.conftest import Said, jobqueue, not_refused


def found_in(tmp_path: Path, code: str) -> list[Finding]:
    file = tmp_path / "tasks.py"
    file.write_text(code)
    return scan(file)


def scanned(path: Path, flags: str = "") -> Said:
    return jobqueue(f"import celery --scan {path} {flags}")


# fmt: off
CELERY = [
    ("from celery import shared_task\n@shared_task\ndef a(): ...", "@shared_task"),
    ("from celery import shared_task as t\n@t()\ndef a(): ...", "@t"),
    ("import celery\n@celery.shared_task\ndef a(): ...", "@celery.shared_task"),
    ("from x import app\n@app.task\nasync def a(): ...", "@app.task"),
    ("@celery_app.task\ndef a(): ...", "@celery_app.task"),
    ("a.delay(1)", ".delay()"),
    ("x.tasks.a.apply_async((1,))", ".apply_async()"),
    ("a.delay_on_commit(1)", ".delay_on_commit()"),
    ("app.send_task('x.a')", ".send_task()"),
    ("from celery import chain\nchain(1)", "chain()"),
    ("from celery import group as g\ng(1)", "g()"),
    ("from celery import chord\nchord(1)(2)", "chord()"),
    ("import celery\ncelery.chord(1)", "celery.chord()"),
    ("def a(self):\n    raise self.retry()", "self.retry()"),
    ("def a(self):\n    self.update_state()", "self.update_state()"),
    ("from celery import Task\nclass A(Task): ...", "Task"),
    ("sender.add_periodic_task(10, a.s())", ".add_periodic_task()"),
    ("CELERY_BEAT_SCHEDULE = {'x': {'schedule': 3}}", "beat_schedule"),
    ("app.conf.beat_schedule = {'x': {'schedule': 3}}", "beat_schedule"),
    ("app.conf.update(beat_schedule={'x': {'schedule': 3}})", "beat_schedule"),
    ("app.conf.beat_schedule['x'] = {'schedule': 3}", "beat_schedule"),
    ("from celery.result import AsyncResult\nAsyncResult(i)", "AsyncResult()"),
    ("app.AsyncResult(i)", ".AsyncResult()"),
]
# fmt: on
NO_CELERY = (
    "from itertools import chain\nchain(1)",
    "frame.apply(print)",
    "set.map(print)",
    "a | b",
    "x = {'schedule': 3}",
    "class Task: ...\nclass A(Task): ...",
    "@queue.task\ndef a(): ...",
    "on_commit(print)\na.get(1)",
)


def test_what_celery_has_is_found_with_its_line(tmp_path: Path) -> None:
    for code, found in CELERY:
        (one,) = found_in(tmp_path, f"# the first line\n{code}")
        assert one.found == found
        line = (tmp_path / "tasks.py").read_text().splitlines()[one.line - 1]
        word = re.findall(r"\w+", found)[-1]
        assert word.lower() in line.lower()
        assert one.advice
        assert all(text.endswith(".") for text in one.advice)
    assert {code: found_in(tmp_path, code) for code in NO_CELERY} == dict.fromkeys(
        NO_CELERY, []
    )


def test_methods_are_those_of_the_tasks_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(
        "from celery import shared_task\n@shared_task\ndef send(): ..."
    )
    (tmp_path / "views.py").write_text(
        "from tasks import send\nother.s(1)\nsend.starmap([])\n(send.s(1) | send.si())"
    )
    found = [one.found for one in scan(tmp_path) if one.path.endswith("views.py")]
    assert sorted(found) == [".starmap()", "|"]


def test_each_option_says_what_to_write(tmp_path: Path) -> None:
    options = ", ".join(f"{name}=1" for name in ADVICE)
    (one,) = found_in(tmp_path, f"a.apply_async({options}, own=1, **more)")
    said = dict(text.split(": ", 1) for text in one.advice if ": " in text)
    assert set(ADVICE) <= said.keys()
    assert said["countdown"] == "Write using(run_after=timedelta(seconds=1))."
    assert said["exchange"] == "Leave it out: there is no broker."
    assert "means nothing here" in said["own"]
    assert "Look through the options in ** by hand." in one.advice


SHARED = "from celery import shared_task\n@shared_task"


def test_calls_are_advised_on(tmp_path: Path) -> None:
    for code, number, advice in (
        ("send.delay(7, queue='x')", 0, "Write send.enqueue(…)."),  # no option
        (
            "app.send_task('shop.tasks.send', [1])",
            0,
            "Write enqueue('shop.send', {…}) of django_jobqueue.",
        ),
        (
            "from celery import shared_task\n@shared_task\ndef a(x, /): ...",
            -1,
            "give each parameter one",
        ),
        (
            "a.apply_async(max_retries=9)",
            -1,
            "max_retries: Write max_attempts=10: it counts the first attempt, too.",
        ),
        (
            f"{SHARED}(rate_limit='10/m')\ndef a(): 1",
            1,
            "rate_limit: Write rate=Rate(10, per=60), for the whole cluster.",
        ),
        (
            f"{SHARED}(acks_late=True)\ndef a(): 1",
            1,
            "acks_late: Leave it out: a job runs again when its worker died.",
        ),
    ):
        (one,) = found_in(tmp_path, code)
        assert advice in one.advice[number]


# Code, and the advice on its last line.
ADVISED = {
    f"{SHARED}(base=A)\ndef a(): 1": "Read its base class A",
    f"{SHARED}(retry_kwargs={{'max_retries': 9}})\ndef a(): 1": "max_attempts=10",
    "self.retry(countdown=2 ** n, exc=e)": "Write raise Retry(after=2 ** n) from e.",
    "self.retry(eta=soon)": "Write raise Retry(after=soon - timezone.now()).",
    "self.retry()": "the job type's backoff decides",
    f"{SHARED}\ndef a(self):\n    self.request.retries": "Write context.attempt",
    "from celery import group\ng = group(1)\ng.apply_async()": "enqueue_many(",
    "r = a.delay()\nr.join()": "Write wait(job.id, timeout=10).",
    f"{SHARED}\ndef a(): 1\nd = a.delay": "Write a.enqueue.",
    "a.delay((1, 2))": "(1, 2) is a tuple, which JSON has not: write a list.",
    "a.apply_async(([1], now()), {'x': {3}})": "{3} is a set",
    "app.send_task('x.a', (datetime.now(),))": "datetime.now() is no value of JSON",
    "a.apply_async(args=(uuid4(),))": "write str(uuid4()).",
    "app.control.revoke(id)": "Write cancel([job.id])",
    "app.control.rate_limit('x', '1/s')": "Write jobqueue override TYPE --rate 10/m",
    "CELERY_TASK_ROUTES = {}": "Write @job(queue=…) at each handler.",
    "CELERY_ROUTES = {}": "Write @job(queue=…) at each handler.",
    "task_time_limit = 3": "the setting TIMEOUT",
    "CELERYD_TASK_TIME_LIMIT = 3": "the setting TIMEOUT",
    "app.conf.task_annotations = {}": "Write the options at @job",
    "app.conf.update(task_acks_late=True)": "a job runs again when its worker died",
    "CELERY_ALWAYS_EAGER = True": "'MODE': 'immediate'",
    "CELERYD_MAX_TASKS_PER_CHILD = 5": "Write runworkers --max-jobs.",
    "from celery.exceptions import Reject\nraise Reject('x')": "Raise Fail('why')",
    "from celery.exceptions import SoftTimeLimitExceeded as S\n"
    "try: ...\nexcept (OSError, S): ...": "Write except JobTimeout",
    "from celery.signals import task_failure\n"
    "@task_failure.connect\ndef a(): 1": "Connect to job_failed",
    "from celery.signals import task_success\ntask_success.connect(a)": "job_succeeded",
}
NOT_ADVISED = (
    "timezone = 'UTC'",
    "def a(self):\n    self.request.user",
    "', '.join(r)",
    "post_save.connect(a)",
    "raise Reject('x')",
    "routes = annotations = {}",
)


def test_what_stands_in_the_code_is_in_the_advice(tmp_path: Path) -> None:
    for code, advice in ADVISED.items():
        *_, last = sorted(found_in(tmp_path, code), key=lambda one: one.line)
        assert advice in " ".join(last.advice), code
        assert last.line >= code.count("\n"), code
    found = {code: found_in(tmp_path, code) for code in NOT_ADVISED}
    assert found == dict.fromkeys(NOT_ADVISED, [])


def test_a_chain_is_one_place_and_written_out(tmp_path: Path) -> None:
    tasks = "".join(f"\n@shared_task\ndef {name}(): 1" for name in "abc")
    code = f"from celery import chain, shared_task, signature{tasks}\n"
    for chain in (
        "(a.s(1) | b.s() | c.si(3)).delay()",
        "chain(a.s(1), b.s(), c.si(3))()",
        "chain([a.s(1), b.s(), c.si(3)]).apply_async(queue='x')",
    ):
        (one,) = found_in(tmp_path, code + chain)[3:]
        assert one.advice[0] == (
            "Write a.using(on_success=b.using(on_success=c)).enqueue(1)."
        )
        assert "The arguments of c(3) are given by nobody" in one.advice[2]
    for chain in ("chain(first, b.s())", "chain(make())", "a.s() | group | b.s()"):
        (one,) = found_in(tmp_path, code + chain)[3:]
        assert one.advice == ("Write handler.using(on_success=<the next>).",)


def test_the_time_zone_of_celery_is_that_of_its_crontabs(tmp_path: Path) -> None:
    entry = "{'task': 'x.a', 'schedule': crontab(0, 2)}"
    for zone in (
        "CELERY_TIMEZONE = 'Europe/Berlin'",
        "app.conf.timezone = 'Europe/Berlin'",
        "app.conf.update(timezone='Europe/Berlin')",
    ):
        found = found_in(tmp_path, f"{zone}\napp.conf.beat_schedule['a'] = {entry}")
        assert found[-1].advice == (
            "Write a.at(cron('0 2 * * *', tz='Europe/Berlin'), name='a')().",
        )


def test_an_enqueue_after_the_commit_and_a_wait_are_found_with_the_call(
    tmp_path: Path,
) -> None:
    code = "transaction.on_commit(lambda: a.delay(1))\na.delay(1).get(timeout=3)"
    found = [(one.line, one.found) for one in found_in(tmp_path, code)]
    assert sorted(found) == [
        *((1, ".delay()"), (1, "on_commit()"), (2, ".delay()"), (2, ".get()"))
    ]


def test_a_task_that_is_not_retried_is_told_of_our_attempts(tmp_path: Path) -> None:
    for options, body, told in (
        ("", "...", True),
        ("(acks_late=True)", "...", True),
        ("(autoretry_for=(OSError,))", "...", False),
        ("(max_retries=2)", "...", False),
        ("(**options)", "...", False),
        ("(bind=True)", "raise self.retry()", False),
    ):
        code = f"from celery import shared_task\n@shared_task{options}\ndef a(): {body}"
        one = next(one for one in found_in(tmp_path, code) if one.name == "a")
        assert any("max_attempts=1" in text for text in one.advice) is told


RULES = {
    "30.0": "every(seconds=30.0)",
    "timedelta(minutes=5)": "every(minutes=5)",
    "timedelta(weeks=1)": "every(seconds=timedelta(weeks=1).total_seconds())",
    "crontab()": "cron('* * * * *')",
    "crontab(0, 2)": "cron('0 2 * * *')",
    "crontab(minute=[0, 30], hour='*/2')": "cron('0,30 */2 * * *')",
    "crontab(0, 2, 'mon')": "cron('0 2 * * MON')",
    "schedules.crontab(0, day_of_month=1)": "cron('0 * 1 * *')",
    "schedule(10)": "every(seconds=10)",
    "schedule(run_every=90)": "every(seconds=90)",
}


def test_an_entry_of_the_beat_becomes_a_schedule(tmp_path: Path) -> None:
    for schedule, rule in RULES.items():
        entry = f"'task': 'x.send', 'schedule': {schedule}, 'args': (1,)"
        entry = f"{{{entry}, 'kwargs': {{'b': 2}}}}"
        (one,) = found_in(tmp_path, f"beat_schedule = {{'each night': {entry}}}")
        assert one.name == "x.send"
        assert one.advice[0] == f"Write send.at({rule}, name='each-night')(1, b=2)."
        call = parsed(one.advice[0].removeprefix("Write ").removesuffix("."))
        for node in ast.walk(call):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "cron":
                assert parse(ast.literal_eval(node.args[0]), "UTC")


def test_entries_that_no_rule_says_or_nobody_can_read_are_explained(
    tmp_path: Path,
) -> None:
    for schedule, reason in (
        ("solar('sunset', 1, 2)", "follows the sun"),
        ("crontab(day_of_month=1, day_of_week=1)", "both match"),
        ("crontab(minute=M)", "by hand: minute is M"),
        ("crontab(hour=25)", "cannot read the hour"),
    ):
        code = f"beat_schedule = {{'x': {{'task': 'x.send', 'schedule': {schedule}}}}}"
        (one,) = found_in(tmp_path, code)
        assert reason in one.advice[0]
    code = "beat_schedule = {**more, 'x': entry(), 'y': {'task': 'x.y'}}\n"
    code += "CELERY_BEAT_SCHEDULE = schedules()"
    found = found_in(tmp_path, code)
    assert [one.found for one in found] == ["beat_schedule"] * 4


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    file = tmp_path / "made"
    code = f"open({str(file)!r}, 'w')\na.delay(1)"
    assert len(found_in(tmp_path, code)) == 1
    assert not file.exists()


def test_files_that_are_no_python_are_named_and_the_others_read(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("a.delay(")
    (tmp_path / "bytes.py").write_bytes(b"a = '\xff'")
    (tmp_path / "escape.py").write_text("a = '\\d'\na.delay()")
    found = {Path(one.path).name: one.found for one in scan(tmp_path)}
    assert found == {
        "bad.py": "unreadable",
        "bytes.py": "unreadable",
        "escape.py": ".delay()",
    }


def test_installed_packages_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    for folder in (".git", "node_modules", "env", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("a.delay()")
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert [Path(one.path).parent.name for one in scan(tmp_path)] == ["src"]


def test_the_command_lists_places_and_counts_them(tmp_path: Path) -> None:
    assert scanned(tmp_path).out == "No Celery was found.\n"
    assert scanned(tmp_path, "--format json").json == []
    (tmp_path / "views.py").write_text("\nsend.delay(1)\n")
    assert scanned(tmp_path).out == (
        f"{tmp_path}/views.py:2: .delay() send\n"
        "    Write send.enqueue(…).\n"
        "1 place in 1 file.\n"
    )
    (found,) = scanned(tmp_path, "--format json").json
    place = {"path": f"{tmp_path}/views.py", "line": 2, "found": ".delay()"}
    assert found == {**place, "name": "send", "advice": ["Write send.enqueue(…)."]}


def test_what_makes_no_sense_is_refused(db: None) -> None:
    reasons = {
        "celery": "--scan PATH",
        "celery --scan nowhere": "there is no file or folder 'nowhere'",
        "celery --scan . --yes": "--yes is not for celery",
        "celery --scan . --as code": "--as is not for celery",
        "django-q": "There is no source 'django-q'. Did you mean 'django-q2'? The "
        "sources are celery-beat, django-q2, celery.",
    }
    assert not_refused("import", reasons) == {}
