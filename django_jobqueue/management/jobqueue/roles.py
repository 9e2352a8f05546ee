"""``jobqueue roles``: ready-made groups of those who look after the job queue."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.apps import apps
from django.core.management.base import CommandError
from django.db import router, transaction

from django_jobqueue.management.jobqueue.console import Console, counted
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.rooms import rooms
from django_jobqueue.verbs.declarations import flag

CORE: Final = "jobqueue"


# What each role adds to the one above it, is said by the rooms.
ROLES: Final = ("Job viewer", "Job operator", "Job engineer", "Job admin")


class Given(NamedTuple):
    """The changes to the rights of a role."""

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
        return f"{', '.join(changes)}." if changes else "already has its rights."


class Roles(Subcommand):
    name = "roles"
    reads_jobs = False
    summary = "Create groups of users with rights for the admin."
    description = """\
Create four groups of users, or update their rights, such as after an upgrade:

  Job viewer    sees every page, and no data of jobs; saves views of lists
  Job operator  is on call: also sees data, cancels, reschedules, releases and
                replays jobs, one or many, pauses, triages failures, inspects
                and controls workers, shares views, takes leases away
  Job engineer  also edits data, enqueues by hand, changes policies
  Job admin     also deletes archived jobs, reveals secrets, erases personal
                data, starts bulk operations on most jobs, and manages tokens

Each has the rights of those above it. Other rights of the app jobqueue are
taken from them; their rights of other apps, their members, and other groups
stay.

  jobqueue roles --dry-run"""
    json = """one object: for each role is_new, added and removed (names of rights)."""
    arguments = (flag("dry_run", "Change nothing; say what would change."),)

    def run(self, console: Console, options: Options) -> None:
        if not apps.is_installed("django.contrib.auth"):
            raise CommandError("Groups need django.contrib.auth in INSTALLED_APPS.")
        model: Any = apps.get_model("auth", "Group")
        known = _permissions()
        names: set[str] = set()
        given: dict[str, Given] = {}
        with transaction.atomic(using=router.db_for_write(model)):
            for role in ROLES:
                names |= rights_of(role)
                given[role] = _give(model, role, names, known, dry=options["dry_run"])
        if console.is_json:
            console.json({role: one._asdict() for role, one in given.items()})
            return
        for role, one in given.items():
            console.info(f"{role}: {one.text}")
        if options["dry_run"]:
            console.info("Nothing was changed.")


def rights_of(role: str) -> set[str]:
    """The rights that this role adds; those of features have the features' labels."""
    return {
        _named(room.label, name)
        for room in rooms()
        for name in room.rights.get(role, ())
    }


def _named(label: str, codename: str) -> str:
    return codename if label == CORE else f"{label}.{codename}"


def _ours(permissions: Any) -> dict[str, Any]:
    """Those of our rooms, by name."""
    labels = [room.label for room in rooms()]
    chosen = permissions.filter(content_type__app_label__in=labels)
    return {
        _named(one.content_type.app_label, one.codename): one
        for one in chosen.select_related("content_type")
    }


def _permissions() -> dict[str, Any]:
    """All permissions of ours. Raises CommandError."""
    model: Any = apps.get_model("auth", "Permission")
    known = _ours(model.objects)
    missing = {name for role in ROLES for name in rights_of(role)} - set(known)
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
    had = set(_ours(group.permissions))
    more, less = sorted(names - had), sorted(had - names)
    if not dry:
        group.permissions.add(*(known[name] for name in more))
        group.permissions.remove(*(known[name] for name in less))
    return Given(is_new=False, added=more, removed=less)
