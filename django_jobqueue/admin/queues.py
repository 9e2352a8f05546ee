"""Queues that somebody paused, now or once. Any other queue is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from django import forms
from django.contrib.admin import display as column
from django.contrib.admin import register
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin import catalogue, display
from django_jobqueue.admin.actions import OperatedAdmin
from django_jobqueue.admin.base import may
from django_jobqueue.admin.job_types import pause_of, state_of
from django_jobqueue.admin.pause import PauseForm, PauseQueue, ResumeQueue
from django_jobqueue.admin.verbs import Question, Verb
from django_jobqueue.models import Queue
from django_jobqueue.policy import queue_problem


class PauseByNameForm(PauseForm):
    """Which queue; it has no row as long as nobody paused it."""

    name = forms.CharField(label=_("Queue"), max_length=100)
    field_order = ("name",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = ", ".join(catalogue.queue_names(self.request))
        text = gettext("Known queues: %(names)s.") % {"names": known}
        self.fields["name"].help_text = text if known else ""

    def clean_name(self) -> str:
        """A name that a queue can have."""
        name: str = self.cleaned_data["name"]
        if queue_problem(name):
            raise ValidationError(
                _("A queue's name has no space, comma or control character.")
            )
        return name


@register(Queue)
class QueueAdmin(OperatedAdmin):
    """Queues are paused and resumed, and nothing else."""

    change_form_template = "admin/jobqueue/queue.html"
    verbs: ClassVar[Sequence[Verb]] = (PauseQueue(), ResumeQueue())
    ordering = ("name",)
    list_display = ("queue_name", "state", "by", "since", "reason")
    list_display_links = ("queue_name",)

    def has_pause_permission(self, request: HttpRequest) -> bool:
        """Whether the user may pause and resume."""
        return may(request, "pause_queue")

    def get_urls(self) -> list[URLPattern]:
        """Also a page that pauses a queue by its name."""
        own = path(
            "pause-by-name/",
            self.admin_site.admin_view(self.pause_by_name),
            name="jobqueue_queue_pause_by_name",
        )
        return [own, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With a link to that page for those who may."""
        extra = {"may_pause": self.has_pause_permission(request)}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def pause_by_name(self, request: HttpRequest) -> HttpResponse:
        """Pause a queue that has no row yet."""
        (pause, _resume) = self.verbs
        if not self.may_do(request, pause):
            raise PermissionDenied
        data = request.POST if request.method == "POST" else None
        form = PauseByNameForm(data, request=request, rows=())
        there = reverse(f"{self.admin_site.name}:jobqueue_queue_changelist")
        if form.is_valid():
            rows = [Queue(name=form.cleaned_data["name"])]
            self._do(request, pause, rows, form.cleaned_data)
            return HttpResponseRedirect(there)
        question = Question(gettext("Pause a queue"))
        return self.question_page(request, pause, question, form, {"action": ""})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Add what the template shows."""
        queue = context["original"]
        context["state"] = state_of(queue)
        context["summary"] = pause_of(queue)
        context["buttons"] = self.buttons(request, queue)
        return super().render_change_form(request, context, *args, **kwargs)

    @column(description=_("name"))
    def queue_name(self, queue: Queue) -> str:
        """The name."""
        return display.visible(queue.name)

    @column(description=_("state"))
    def state(self, queue: Queue) -> Any:
        """Whether it is claimed from."""
        return state_of(queue)

    @column(description=_("paused by"))
    def by(self, queue: Queue) -> str:
        """Who."""
        return display.visible(queue.paused_by) or display.NOTHING

    @column(description=_("since"))
    def since(self, queue: Queue) -> Any:
        """When."""
        return display.moment(queue.paused_at)

    @column(description=_("reason"))
    def reason(self, queue: Queue) -> str:
        """Why."""
        return display.visible(queue.paused_reason) or display.NOTHING
