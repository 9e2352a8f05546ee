"""``call_command("runworkers")`` by code that goes on: its process is as it was."""

from __future__ import annotations

import threading

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from django_jobqueue import get_job
from django_jobqueue.conf import Conf, conf
from tests.embedded.programs import Run, program  # noqa: F401
from tests.sample import jobs
from tests.support.rows import archived

CALLED = """
import gc, json, logging, signal, subprocess
from asgiref.sync import SyncToAsync
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.backends.signals import connection_created
from django.utils import autoreload
from django_jobqueue import signals
from django_jobqueue import get_job
from django_jobqueue.conf import Conf, conf

SIGNALS = [one for one in vars(signals).values() if hasattr(one, "receivers")]
SIGNALS += [autoreload.file_changed, connection_created]

def state():
    woke = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(woke)
    umask = os.umask(0)
    os.umask(umask)
    gc.collect()
    log = logging.getLogger("django_jobqueue")
    return {
        "settings": {name: conf.read(name) for name in Conf.settings},
        "signals": {n: str(signal.getsignal(n)) for n in signal.valid_signals()},
        "wakeup": woke,
        "garbage": [gc.get_threshold(), gc.get_freeze_count() > 1_000, gc.isenabled()],
        "switch": sys.getswitchinterval(),
        "log": [[str(h) for h in log.handlers], log.level, log.propagate],
        "receivers": [len(one.receivers) for one in SIGNALS],
        "open": len(os.listdir("/proc/self/fd")),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
        "process": [os.getsid(0), os.getpgid(0), umask, os.getcwd(), dict(os.environ)],
        "executor": id(SyncToAsync.single_thread_executor),
    }

connections.close_all()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, lambda number, frame: None)
other = subprocess.Popen(["sh", "-c", "exit 3"])
before = state()
drain = "--drain --queues mail --threads 3 --lease 7 --release called --verbosity 2"
mistake = "--queues mail --threads 0 --async-slots 0"
failing_reload = "--reload --queues mail"
for flags in (drain, drain, mistake, mistake, failing_reload, failing_reload):
    try:
        call_command("runworkers", *flags.split())
    except (CommandError, RuntimeError) as error:
        print(error)
    connections.close_all()
    after = state()
    print({n: (before[n], after[n]) for n in before if before[n] != after[n]})
print(other.wait())
"""


@pytest.mark.processes
def test_whoever_called_it_finds_its_process_as_it_was(program: Run) -> None:  # noqa: F811
    for queue in ("mail", "other"):
        jobs.add.using(queue=queue).enqueue(1)
    run = program(CALLED)
    assert run.wait() == 0, run.output
    assert [line for line in run.output.splitlines() if " INFO " not in line] == [
        *["{}"] * 2,
        *["With --threads 0 and --async-slots 0 nothing can run.", "{}"] * 2,
        *["Script -c does not exist.", "{}"] * 2,
        "3",
    ]
    assert [job.queue for job in archived(status="succeeded")] == ["mail"]


FAILED = """
from django.core.management import call_command
from django_jobqueue.host.control import HostControl

def fail(self, workers):
    if any(entry.worker for entry in self.process_table):
        raise RuntimeError("a supervisor of the tests")

HostControl.proceed = fail
try:
    call_command("runworkers", "--processes", "2", "--verbosity", "0")
except RuntimeError as error:
    print(error)
print("children:", open(f"/proc/self/task/{os.getpid()}/children").read())
"""


@pytest.mark.processes
def test_a_supervisor_that_fails_leaves_no_process_behind(
    program: Run,  # noqa: F811
) -> None:
    run = program(FAILED, is_forked=True)
    assert run.wait() == 0, run.output
    assert run.output == "a supervisor of the tests\nchildren: \n"


def test_it_is_refused_outside_of_the_main_thread() -> None:
    refused: list[str] = []

    def call() -> None:
        try:
            call_command("runworkers", "--queues", "mail")
        except CommandError as error:
            refused.append(str(error))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(20)
    assert refused == [
        "runworkers listens to signals, so it must be called in the main thread. In "
        "another one use django_jobqueue.worker()."
    ]
    assert conf.queues is Conf.settings["QUEUES"].default


@pytest.mark.django_db
def test_it_is_refused_where_a_transaction_is_open() -> None:
    made = jobs.add.enqueue(1)
    with pytest.raises(CommandError, match="A transaction is open on .*'default'"):
        call_command("runworkers", "--drain")
    assert get_job(made.id).status == "queued"
