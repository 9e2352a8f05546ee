"""``jobqueue roles``: ready-made groups of those who look after the job queue."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.apps import apps
from django.core.management.base import CommandError, CommandParser
from django.db import router, transaction

from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.detail_page import as_json
from django_jobqueue.management.jobqueue.subcommand import Subcommand
from django_jobqueue.management.jobqueue.subcommand_verbs import add_format

APP: Final = "jobqueue"

# What each role adds to the one above it.
ROLES: Final[dict[str, tuple[str, ...]]] = {
    "Job viewer": (
        "add_savedview",
        "view_alert",
        "view_archivedjob",
        "view_auditentry",
        "view_bulkoperation",
        "view_erasure",
        "view_failuregroup",
        "view_host",
        "view_jobsearch",
        "view_jobtype",
        "view_keylimit",
        "view_lease",
        "view_overview",
        "view_queue",
        "view_queuedjob",
        "view_schedule",
        "view_token",
        "view_worker",
    ),
    # Whoever is on call: sees what a job is about, stops the bleeding, and repairs.
    "Job operator": (
        "cancel_queuedjob",
        "change_failuregroup",
        "control_worker",
        "free_unique_key",
        "pause_jobtype",
        "pause_queue",
        "pause_schedule",
        "release_queuedjob",
        "replay_archivedjob",
        "reschedule_queuedjob",
        "run_schedule",
        "share_savedview",
        "start_bulkoperation",
        "take_away_lease",
        "start_jobsearch",
        "view_job_data",
    ),
    # Says what is to be done instead of the code: other data, other policies.
    "Job engineer": (
        "add_schedule",
        "change_jobtype",
        "change_keylimit",
        "change_schedule",
        "delete_schedule",
        "edit_job_data",
        "enqueue_job",
    ),
    # What cannot be taken back, and what is secret.
    "Job admin": (
        "erase_personal_data",
        "manage_token",
        "prune_archivedjob",
        "reveal_job_data",
        "unbounded_bulkoperation",
        "work_remotely",
    ),
}


class Given(NamedTuple):
    """What changes about the rights of a role."""

    is_new: bool
    added: list[str]
    removed: list[str]

    @property
    def text(self) -> str:
        """It as a sentence."""
        if self.is_new:
            return f"new, with {counted(len(self.added), 'right')}."
        changes = [f"+{name}" for name in self.added]
        changes += [f"-{name}" for name in self.removed]
        return f"{', '.join(changes)}." if changes else "has its rights already."


class Roles(Subcommand):
    """Creates the groups, or gives them their rights again."""

    name = "roles"
    reads_jobs = False
    summary = "Create groups of users with rights for the admin."
    description = """\
Create four groups of users, or give them their rights again, such as those
that a new release brings:

  Job viewer    sees every page, and no data of jobs; saves views of lists
  Job operator  is on call: also sees data, cancels, reschedules, releases and
                replays jobs, one or many, pauses, looks after failures, asks
                and controls workers, shares views, takes leases away
  Job engineer  also edits data, enqueues by hand, changes policies
  Job admin     also deletes archived jobs, reveals secrets, erases personal
                data, starts bulk operations on most jobs, and manages tokens

Each has the rights of those above it. Other rights of the app jobqueue are
taken from them; their rights of other apps, their members, and other groups
stay.

  jobqueue roles --dry-run"""
    epilog = """\
--format json prints one object: for each role is_new, added and removed (names
of rights)."""

    def add_arguments(self, parser: CommandParser) -> None:
        """Add whether to only say what would change."""
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Change nothing; say what would change.",
        )
        add_format(parser)

    def run(self, console: Console, options: dict[str, Any]) -> None:
        """Create or update all of them or none. Raises CommandError."""
        if not apps.is_installed("django.contrib.auth"):
            raise CommandError("Groups need django.contrib.auth in INSTALLED_APPS.")
        model: Any = apps.get_model("auth", "Group")
        known = _permissions()
        names: set[str] = set()
        given: dict[str, Given] = {}
        with transaction.atomic(using=router.db_for_write(model)):
            for role, added in ROLES.items():
                names |= set(added)
                given[role] = _give(model, role, names, known, dry=options["dry_run"])
        if options["format"] == "json":
            console.print(as_json({role: one._asdict() for role, one in given.items()}))
            return
        for role, one in given.items():
            console.info(f"{role}: {one.text}")
        if options["dry_run"]:
            console.info("Nothing was changed.")


def _permissions() -> dict[str, Any]:
    """The permissions of the app, by codename. Raises CommandError."""
    model: Any = apps.get_model("auth", "Permission")
    known = {p.codename: p for p in model.objects.filter(content_type__app_label=APP)}
    missing = {name for names in ROLES.values() for name in names} - set(known)
    if missing:
        raise CommandError(
            f"There is no permission {', '.join(sorted(missing))}: run manage.py "
            "migrate first, which creates them."
        )
    return known


def _give(
    model: Any, role: str, names: set[str], known: dict[str, Any], *, dry: bool
) -> Given:
    """Let this group have these rights; returns what changes."""
    group = model.objects.filter(name=role).first()
    if group is None:
        if not dry:
            group = model.objects.create(name=role)
            group.permissions.set(known[name] for name in names)
        return Given(is_new=True, added=sorted(names), removed=[])
    held = group.permissions.filter(content_type__app_label=APP)
    had = set(held.values_list("codename", flat=True))
    more, less = sorted(names - had), sorted(had - names)
    if not dry:
        group.permissions.add(*(known[name] for name in more))
        group.permissions.remove(*(known[name] for name in less))
    return Given(is_new=False, added=more, removed=less)
