"""A project with an admin site of its own, and a page of its own."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.urls import path

from django_jobqueue import admin as pages
from django_jobqueue import models
from django_jobqueue.contrib.console.admin.view_page import SavedViewAdmin
from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.contrib.http.admin.token_list import TokenAdmin
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.leases.admin.lease_list import LeaseAdmin
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.contrib.schedules.admin.schedule_list import ScheduleAdmin
from django_jobqueue.contrib.schedules.models import Schedule


class OurArchivedJobAdmin(pages.ArchivedJobAdmin):
    """Longer pages."""

    list_per_page = 100


site = AdminSite("ops")
site.register(models.ArchivedJob, OurArchivedJobAdmin)
site.register(models.FailureGroup, pages.FailureGroupAdmin)
site.register(models.Host, pages.HostAdmin)
site.register(models.JobType, pages.JobTypeAdmin)
site.register(models.KeyLimit, pages.KeyLimitAdmin)
site.register(Lease, LeaseAdmin)
site.register(models.Overview, pages.OverviewAdmin)
site.register(models.Queue, pages.QueueAdmin)
site.register(models.QueuedJob, pages.QueuedJobAdmin)
site.register(Schedule, ScheduleAdmin)
site.register(SavedView, SavedViewAdmin)
site.register(Token, TokenAdmin)
site.register(models.Worker, pages.WorkerAdmin)

urlpatterns = [path("ops/", site.urls)]
