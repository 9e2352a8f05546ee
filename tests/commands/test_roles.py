"""``jobqueue roles``: ready-made groups."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission

from django_jobqueue.management.jobqueue.roles import ROLES
from tests.commands.conftest import jobqueue, refusal

pytestmark = pytest.mark.django_db


def rights(role: str) -> set[str]:
    held = Group.objects.get(name=role).permissions
    return set(held.values_list("codename", flat=True))


def test_each_role_has_the_rights_of_the_one_before_it_and_more() -> None:
    said = jobqueue("roles")
    viewer, operator, engineer, admin = map(rights, ROLES)
    assert viewer < operator < engineer < admin
    assert said.out == (
        f"Job viewer: new, with {len(viewer)} rights.\n"
        f"Job operator: new, with {len(operator)} rights.\n"
        f"Job engineer: new, with {len(engineer)} rights.\n"
        f"Job admin: new, with {len(admin)} rights.\n"
    )


def test_a_viewer_only_views_and_sees_no_data() -> None:
    jobqueue("roles")
    views = rights("Job viewer") - {"add_savedview"}  # for oneself
    assert {name.partition("_")[0] for name in views} == {"view"}
    assert "view_job_data" in rights("Job operator")  # masked; on call one needs it
    assert "edit_job_data" not in rights("Job operator")
    assert "reveal_job_data" not in rights("Job engineer")


def test_an_admin_has_every_right_that_a_page_asks_for() -> None:
    """The tables that no page shows have rights, too, since Django makes them."""
    jobqueue("roles")
    known = Permission.objects.filter(content_type__app_label__startswith="jobqueue")
    unused = {"view_failure", "view_failurerollup", "view_rollup"}
    assert set(known.values_list("codename", flat=True)) - unused == rights("Job admin")


def test_the_second_time_nothing_changes() -> None:
    jobqueue("roles")
    before = {role: rights(role) for role in ROLES}
    said = jobqueue("roles")
    assert said.out.count("already has its rights.") == len(ROLES)
    assert {role: rights(role) for role in ROLES} == before


def test_a_group_gets_its_rights_again_and_keeps_those_of_other_apps(
    django_user_model: Any,
) -> None:
    jobqueue("roles")
    group = Group.objects.get(name="Job operator")
    member = django_user_model.objects.create_user("bert")
    group.user_set.add(member)
    group.permissions.remove(Permission.objects.get(codename="cancel_queuedjob"))
    for name in ("change_jobtype", "view_user"):
        group.permissions.add(Permission.objects.get(codename=name))

    dry = jobqueue("roles --dry-run")
    assert "Job operator: +cancel_queuedjob, -change_jobtype.\n" in dry.out
    assert "change_jobtype" in rights("Job operator")

    assert (
        "Job operator: +cancel_queuedjob, -change_jobtype.\n" in jobqueue("roles").out
    )
    assert rights("Job operator") >= {"cancel_queuedjob", "view_user"}
    assert "change_jobtype" not in rights("Job operator")
    assert list(group.user_set.all()) == [member]


def test_a_permission_that_is_not_there_yet_asks_for_migrate() -> None:
    Permission.objects.filter(codename="view_overview").delete()
    assert "no permission view_overview: run manage" in refusal("roles")
    assert not Group.objects.exists()


def test_programs_are_told_what_changes() -> None:
    said = jobqueue("roles --dry-run --format json").json
    assert not Group.objects.exists()
    assert said["Job viewer"]["is_new"]
    assert "view_queuedjob" in said["Job viewer"]["added"]
    jobqueue("roles")
    group = Group.objects.get(name="Job viewer")
    group.permissions.remove(*group.permissions.all()[:2])
    said = jobqueue("roles --format json").json
    assert len(said["Job viewer"]["added"]) == 2
    nothing = {"is_new": False, "added": [], "removed": []}
    assert said["Job admin"] == nothing
