"""The files in ``docs/operations`` fit the command and the settings' defaults."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class

from django_jobqueue.conf import Conf, conf
from django_jobqueue.host.liveness import BEAT, STOP_MARGIN
from tests.docs.pages import DOCS
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers

FILES = DOCS / "operations"
STOP = conf.grace + STOP_MARGIN  # seconds that a stop may take
NAMES = (
    "jobqueue.service",
    "jobqueue.openrc",
    "Dockerfile",
    "compose.yaml",
    "kubernetes.yaml",
)


def text(name: str) -> str:
    return (FILES / name).read_text()


def unit() -> dict[str, str]:
    """The section of the service."""
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text("jobqueue.service"))
    return dict(parser["Service"])


def shell_variables() -> dict[str, str]:
    """Those that the OpenRC script sets."""
    assigned = r'^(?:export )?(\w+)=("[^"]*"|.*)$'
    lines = re.findall(assigned, text("jobqueue.openrc"), re.M)
    return {name: shlex.split(value)[0] for name, value in lines}


def manifests() -> dict[str, Any]:
    """By their kind."""
    return {one["kind"]: one for one in yaml.safe_load_all(text("kubernetes.yaml"))}


def pod(kind: str = "Deployment") -> dict[str, Any]:
    found: dict[str, Any] = manifests()[kind]["spec"]["template"]["spec"]
    return found


def container(kind: str = "Deployment") -> dict[str, Any]:
    (found,) = pod(kind)["containers"]
    assert isinstance(found, dict)
    return found


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text("compose.yaml"))["services"]
    return found


def command_lines() -> dict[str, list[str]]:
    """What each file starts: the arguments of runworkers."""
    in_image = re.findall(r"^CMD (\[.*\])$", text("Dockerfile"), re.M)
    found = {
        "jobqueue.service": shlex.split(unit()["ExecStart"]),
        "jobqueue.openrc": shlex.split(shell_variables()["command_args"]),
        "Dockerfile": yaml.safe_load(in_image[0]),
        "compose.yaml": compose()["workers"]["command"],
        "kubernetes.yaml": container()["command"] + container()["args"],
    }
    return {
        name: words[words.index("runworkers") + 1 :] for name, words in found.items()
    }


def test_runworkers_knows_the_flags_and_the_variables_are_settings() -> None:
    command = load_command_class("django_jobqueue", "runworkers")
    parser = command.create_parser("manage.py", "runworkers")
    for name in NAMES:
        parser.parse_args(command_lines()[name])
        named = set(re.findall(r"\bJOBQUEUE_(\w+)", text(name)))
        assert named <= {setting.upper() for setting in Conf.settings}, name


def test_each_file_has_a_link() -> None:
    guide = (DOCS / "guides" / "health.md").read_text()
    assert [n for n in NAMES if f"](../operations/{n})" not in guide] == []


def test_a_service_manager_waits_for_a_stop() -> None:
    assert float(unit()["TimeoutStopSec"]) == STOP
    assert shell_variables()["retry"].startswith(f"TERM/{STOP:g}/")
    assert compose()["workers"]["stop_grace_period"] == f"{STOP:g}s"
    assert pod()["terminationGracePeriodSeconds"] == STOP


def test_systemd_hears_only_the_supervisor_and_signals_only_it() -> None:
    service = unit()
    assert (service["Type"], service["NotifyAccess"]) == ("notify", "main")
    assert service["KillMode"] == "mixed"
    assert float(service["WatchdogSec"]) >= 2 * BEAT


def test_a_heartbeat_is_missed_only_if_several_are() -> None:
    files = text("jobqueue.openrc"), compose()["workers"]["healthcheck"]["test"][1]
    for one in files:
        (minutes,) = re.findall(r"-mmin -(\d+)", one)
        assert int(minutes) * 60 >= 3 * BEAT
    heartbeat = re.search(r"JOBQUEUE_HEARTBEAT_FILE=(\S+)", text("Dockerfile"))
    assert heartbeat is not None
    assert heartbeat[1] in files[1]


def test_kubernetes_asks_the_port_that_is_open() -> None:
    (port,) = container()["ports"]
    args = container()["args"]
    assert args[args.index("--metrics-port") + 1] == str(port["containerPort"])
    paths = {
        name: container()[f"{name}Probe"]["httpGet"]
        for name in ("startup", "readiness", "liveness")
    }
    assert {one["port"] for one in paths.values()} == {port["name"]}
    assert {name: one["path"] for name, one in paths.items()} == {
        "startup": "/readyz",
        "readiness": "/readyz",
        "liveness": "/healthz",
    }
    annotations = manifests()["Deployment"]["spec"]["template"]["metadata"]
    asked = annotations["annotations"]["prometheus.io/port"]
    assert asked == str(port["containerPort"])


def test_no_slot_is_missing_while_kubernetes_replaces_pods() -> None:
    deployment = manifests()["Deployment"]["spec"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"] == labels
    budget = manifests()["PodDisruptionBudget"]["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert budget["maxUnavailable"] < deployment["replicas"]


# Migrations, limits, and how little the workers may do.

MIGRATE = ["python", "manage.py", "migrate"]
AS_ROOT = ("--user", "--map-root-user") if os.geteuid() else ()
MOUNTABLE = ("unshare", "--mount", *AS_ROOT)
READ_ONLY = (
    *MOUNTABLE,
    "sh",
    "-ec",
    'mount --bind "$0" "$0"; mount -o remount,bind,ro /; exec "$@"',
)


def test_migrations_run_once_and_before_workers() -> None:
    """In Kubernetes workers wait for them themselves; two hosts with systemd or OpenRC
    are not to migrate at once, so people do it there."""
    services = compose()
    assert services["migrate"]["command"] == MIGRATE
    done = {"condition": "service_completed_successfully"}
    assert services["workers"]["depends_on"]["migrate"] == done
    assert container("Job")["command"] == MIGRATE
    assert container("Job")["image"] == container()["image"]
    assert manifests()["Job"]["metadata"]["name"].endswith(
        container()["image"].partition(":")[2]
    )
    for name in NAMES:
        assert "migrate" in text(name), name


@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_kubernetes_confines_pods_and_bounds_their_memory(kind: str) -> None:
    spec, one = pod(kind), container(kind)
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert one["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= set(one["resources"]["requests"])
    assert "memory" in one["resources"]["limits"]
    assert one["envFrom"] == container()["envFrom"]
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in one["volumeMounts"]} == volumes


@pytest.mark.parametrize("service", ["migrate", "workers"])
def test_compose_confines_services_and_bounds_their_memory(service: str) -> None:
    one = compose()[service]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert set(one["deploy"]["resources"]["limits"]) == {"cpus", "memory"}


def test_no_file_starts_workers_as_root() -> None:
    """Kubernetes refuses an image whose user has a name: it might be that of root."""
    user = re.search(r"^USER (\d+)$", text("Dockerfile"), re.M)
    assert user is not None
    assert int(user[1]) > 0
    assert f"--uid {user[1]} " in text("Dockerfile")
    assert unit()["User"] == shell_variables()["command_user"] == "mysite"


def test_services_are_confined_and_bounded() -> None:
    service, script = unit(), shell_variables()
    assert service["ProtectSystem"] == "strict"
    assert (service["NoNewPrivileges"], service["PrivateTmp"]) == ("yes", "yes")
    assert service["CapabilityBoundingSet"] == ""
    assert "ProtectProc" not in service  # it hides processes of predecessors
    # The default would stop all workers when the kernel kills one.
    assert service["OOMPolicy"] == "continue"
    assert {"MemoryMax", "TasksMax"} <= set(service)
    assert script["no_new_privs"] == "yes"
    assert re.search(r"^memory\.max \d+\npids\.max \d+$", text("jobqueue.openrc"), re.M)


def test_what_a_file_lets_workers_write_is_writable() -> None:
    heartbeat = re.search(r"JOBQUEUE_HEARTBEAT_FILE=(\S+)", text("Dockerfile"))
    assert heartbeat is not None
    folder = str(Path(heartbeat[1]).parent)
    assert folder in compose()["workers"]["tmpfs"]
    assert folder in [mount["mountPath"] for mount in container()["volumeMounts"]]
    made = re.search(r"checkpath --directory --owner mysite (\S+)", text(NAMES[1]))
    assert made is not None
    args = command_lines()["jobqueue.openrc"]
    for flag in ("--pidfile", "--heartbeat-file"):
        assert str(Path(args[args.index(flag) + 1]).parent) == made[1]


@pytest.mark.processes
@pytest.mark.skipif(
    subprocess.run([*MOUNTABLE, "true"], capture_output=True, check=False).returncode,
    reason="needs a kernel that lets users mount",
)
@pytest.mark.django_db(transaction=True)
def test_workers_write_to_nothing_but_what_they_are_told(
    runworkers: Callable[..., RunWorkers], tmp_path: Path
) -> None:
    """The root filesystem is read-only, as in the files for containers."""
    heartbeat = tmp_path / "heartbeat"
    jobs.add.enqueue(1)
    run = runworkers(
        *("--heartbeat-file", str(heartbeat), "--drain", "--threads", "1"),
        within=(*READ_ONLY, str(tmp_path)),
    )
    assert run.wait() == 0, run.output
    assert archived()[0].status == "succeeded"
    assert "cannot be written" not in run.output
    assert "Read-only" not in run.output


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = unit()["ExecStart"].split()[0]
    copy = tmp_path / "mysite-jobs.service"
    copy.write_text(text("jobqueue.service").replace(program, sys.executable))
    run("systemd-analyze", "verify", "--man=no", str(copy))


def test_a_shell_understands_the_script() -> None:
    run("sh", "-n", str(FILES / "jobqueue.openrc"))


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="needs shellcheck")
def test_the_script_has_no_pitfalls() -> None:
    run("shellcheck", str(FILES / "jobqueue.openrc"))


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
