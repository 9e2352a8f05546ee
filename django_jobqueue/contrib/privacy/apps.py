"""The app of personal data: label ``jobqueue_privacy``, so tables read
``jobqueue_privacy_erasure``."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.rooms import Room, Tab


class PrivacyConfig(Room):
    """Adds erasures, and the jobs that work them off."""

    default = True
    name = "django_jobqueue.contrib.privacy"
    label = "jobqueue_privacy"
    verbose_name = _("Job queue: personal data")
    tabs = (Tab("erasure", pgettext_lazy("tab", "Personal data"), "p"),)
    subcommands = {
        "personal-data": (
            "django_jobqueue.contrib.privacy.personal_data_command.PersonalData"
        )
    }
    rights = {"Job viewer": ("view_erasure",), "Job admin": ("erase_personal_data",)}
    personal_columns = ("django_jobqueue.contrib.privacy.searched_tables.SOURCES",)
    chunked_work = {"erasure": "django_jobqueue.contrib.privacy.personal_data.WORK"}
    dropped_hourly = ("django_jobqueue.contrib.privacy.erasure_rows.forget",)
    below_search = ("django_jobqueue.contrib.privacy.admin.erasure_admin.find_it",)
