"""The app of leases: label ``jobqueue_leases``, so tables read
``jobqueue_leases_lease``."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_jobqueue.rooms import Room, Tab


class LeasesConfig(Room):
    """Adds leases by name, and hosts that stand by for one."""

    default = True
    name = "django_jobqueue.contrib.leases"
    label = "jobqueue_leases"
    verbose_name = _("Job queue: leases")
    tabs = (Tab("lease", _("Leases"), "l"),)
    subcommands = {"leases": "django_jobqueue.contrib.leases.leases_command.Leases"}
    # A renewed row finds room in its page.
    storage = "ALTER TABLE jobqueue_leases_lease SET (fillfactor = 50)"
    rights = {
        "Job viewer": ("view_lease",),
        "Job operator": ("take_away_lease",),
    }
    maintenance_threads = ("django_jobqueue.contrib.leases.standby.thread",)
    status_lists = ("django_jobqueue.contrib.leases.lease_readings.STANDBY_HOSTS",)
    jumps = ("django_jobqueue.contrib.leases.admin.lease_list.address_of_lease",)
