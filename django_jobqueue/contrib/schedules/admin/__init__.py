"""Schedules: when jobs are enqueued by themselves, and what operators change of it."""

from django.contrib import admin

from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.contrib.schedules.models import Schedule

admin.site.register(
    Schedule,
    lazy_page("django_jobqueue.contrib.schedules.admin.schedule_list.ScheduleAdmin"),
)
