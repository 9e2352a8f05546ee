"""The filters of the list of failure groups."""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Q
from django.db.models.query import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.failures.failure_states import ALL, LABELS, STATES
from django_jobqueue.admin.lists.filters import ChoiceFilter
from django_jobqueue.admin.lists.ranges import TimeRangeFilter
from django_jobqueue.admin.parts import catalogue
from django_jobqueue.admin.parts.display import visible
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models import ArchivedJob, FailureGroup

MOST_JOBS: Final = 5_000  # of a type, that are looked at for their groups
MOST_GROUPS: Final = 1_000  # assigned ones, that are looked at for names
NOBODY: Final = "-"


class GroupStateFilter(ChoiceFilter):
    """By the state at this moment; the tabs above the list are its choices, too."""

    title = _("state")
    template = "admin/jobqueue/no_filter.html"
    parameter_name: str = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every state."""
        return [(name, label) for name, label in LABELS.items() if name != ALL]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """By a condition; nothing for a state that there is not."""
        condition = STATES.get(value)
        return queryset.none() if condition is None else queryset.filter(condition)


class AssigneeFilter(ChoiceFilter):
    """By who looks after them."""

    title = _("assignee")
    parameter_name: str = "assignee"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Oneself, nobody, and the names in use."""
        me = request.user.get_username()
        assigned = FailureGroup.objects.exclude(assignee="").order_by("-last_seen")
        names = set(assigned.values_list("assignee", flat=True)[:MOST_GROUPS]) - {me}
        others = [(name, visible(name)) for name in sorted(names)]
        return [(me, _("me")), (NOBODY, _("nobody")), *others]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """By the name; a dash is nobody."""
        return queryset.filter(assignee="" if value == NOBODY else value)


class GroupJobTypeFilter(ChoiceFilter):
    """By the job types whose jobs failed so: of each, its newest failed jobs tell."""

    title = _("job type")
    parameter_name: str = "job_type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Every job type that was ever declared."""
        return [(name, visible(name)) for name in sorted(catalogue.job_types(request))]

    def narrowed(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        """By the fingerprints of its newest failed jobs; crashes name the type."""
        newest = (
            ArchivedJob.objects.filter(job_type_id=value, status=ArchivedStatus.FAILED)
            .exclude(status=ArchivedStatus.SUCCEEDED)  # names the index to take
            .order_by("-finished_at", "-id")
            .values("fingerprint")[:MOST_JOBS]
        )
        return queryset.filter(Q(fingerprint__in=newest) | Q(frame=value))


class SeenRangeFilter(TimeRangeFilter):
    """When a group was last seen."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Within the range; nothing if it is not clear."""
        if self.error:
            return queryset.none()
        if self.start is not None:
            queryset = queryset.filter(last_seen__gte=self.start)
        if self.end is not None:
            queryset = queryset.filter(last_seen__lte=self.end)
        return queryset
