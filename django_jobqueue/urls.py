"""The addresses that pages with ``{% job_progress %}`` need:
``path("jobs/", include("django_jobqueue.urls"))``."""

from __future__ import annotations

from django.urls import path

from django_jobqueue import views

app_name = "jobqueue"
urlpatterns = [path("progress/<str:token>/", views.progress, name="progress")]
