"""Lists whose menu drafts a bulk operation on all that match the filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.db.models.query import QuerySet
from django.http import HttpRequest, HttpResponse

from django_jobqueue.admin.base import JobQueueAdmin
from django_jobqueue.admin.verbs.drafts import draft, may_draft
from django_jobqueue.admin.verbs.verb import Verb

FEW: Final = 100  # done in the request, also by those who may do more


class DraftingAdmin(JobQueueAdmin):
    """A page with verbs, some of which workers can do with many objects."""

    verbs: ClassVar[Sequence[Verb]] = ()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Tell the template whether all that match can be selected."""
        kinds = [verb.bulk_kind for verb in self.verbs if verb.bulk_kind]
        extra = {"may_bulk": any(may_draft(request, kind) for kind in kinds)}
        return super().changelist_view(request, {**extra, **(extra_context or {})})

    def drafted(
        self, request: HttpRequest, verb: Verb, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        """Draft it, if all that match were selected and are more than a few, or may be,
        since the list searched only the newest; None if that is not so, or this user
        may not."""
        everything = request.POST.get("select_across") == "1"
        if not (verb.bulk_kind and everything and may_draft(request, verb.bulk_kind)):
            return None
        jobs: Any = self.get_changelist_instance(request)
        is_few = len(queryset.values_list("pk")[: FEW + 1]) <= FEW
        if is_few and jobs.is_all_searched:
            return None
        back = request.get_full_path()
        return draft(request, verb.bulk_kind, jobs.selection, back=back)
