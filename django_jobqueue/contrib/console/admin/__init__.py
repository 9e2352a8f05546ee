"""Saved views of lists, and searches through all jobs."""

from django.contrib import admin

from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.contrib.console.models import JobSearch, SavedView

admin.site.register(
    JobSearch,
    lazy_page("django_jobqueue.contrib.console.admin.job_search_list.JobSearchAdmin"),
)
admin.site.register(
    SavedView,
    lazy_page("django_jobqueue.contrib.console.admin.view_page.SavedViewAdmin"),
)
