"""The app of the HTTP API: label ``jobqueue_http``, so tables read
``jobqueue_http_token``."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.rooms import Room, Tab


class HttpConfig(Room):
    """Adds tokens, and what looks after them."""

    default = True
    name = "django_jobqueue.contrib.http"
    label = "jobqueue_http"
    verbose_name = _("Job queue: HTTP API")
    tabs = (Tab("token", pgettext_lazy("tab", "Tokens"), "k"),)
    subcommands = {"token": "django_jobqueue.contrib.http.token_command.Tokens"}
    checks = ("django_jobqueue.contrib.http.checks",)
    rights = {"Job viewer": ("view_token",), "Job admin": ("manage_token",)}
    personal_columns = ("django_jobqueue.contrib.http.personal_columns.SOURCES",)
    dropped = ("django_jobqueue.contrib.http.token_rows.drop",)
    examinations = {
        "tokens": "django_jobqueue.contrib.http.examinations.api_tokens",
        "http-transport": "django_jobqueue.contrib.http.examinations.http_transport",
    }
    owners = {
        "django_jobqueue.contrib.http.auth.TokenCaller": (
            "django_jobqueue.contrib.http.owners.token_name"
        ),
        "django_jobqueue.contrib.http.auth.UserCaller": (
            "django_jobqueue.contrib.http.owners.user_name"
        ),
    }
