"""The data or the result of one job as a text file, masked as on its page."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.actions.action import Action
from django_jobqueue.admin.actions.action_admin import ActionAdmin
from django_jobqueue.admin.base import VIEW_DATA
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.json_text import (
    Unreadable,
    masked,
    stored,
    value_of,
    written,
)
from django_jobqueue.text.redaction import secrets_in

LARGEST: Final = 32 * 1024 * 1024  # characters


class Download(Action):
    """All of a value, also where its page shows the beginning only."""

    name = "download"
    label = _("Download")
    rights = (VIEW_DATA,)
    is_button = False

    def respond(
        self, page: ActionAdmin, request: HttpRequest, row: Any
    ) -> HttpResponse:
        """A file to be kept, which no browser takes for a page."""
        column = "result" if request.GET.get("of") == "result" else "data"
        texts = stored(row, LARGEST)
        try:
            text = self._text(request, row, texts[column], texts["data"])
        except RecursionError:
            text = gettext("Nested too deeply to be shown.")
        return HttpResponse(
            text,
            content_type="text/plain; charset=utf-8",
            headers={
                "Content-Disposition": f'attachment; filename="{row.pk}-{column}.txt"',
                "X-Content-Type-Options": "nosniff",
            },
        )

    @staticmethod
    def _text(
        request: HttpRequest, job: Any, text: str | None, data: str | None
    ) -> str:
        """The value, without the secrets that the data have, wherever they stand."""
        value = value_of(text, LARGEST)
        if isinstance(value, Unreadable):
            return gettext("Python cannot read this value: see it with SQL.")
        job_type = catalogue.job_type(request, job.job_type_id)
        sensitive = job_type.sensitive if job_type else ()
        read = value_of(data, LARGEST)
        if sensitive and isinstance(read, Unreadable):  # what is secret is not known
            return gettext("Python cannot read the data of this job: see it with SQL.")
        secrets = secrets_in(read, sensitive)
        return f"{written(masked(value, sensitive, secrets))}\n"
