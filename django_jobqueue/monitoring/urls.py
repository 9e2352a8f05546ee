"""The addresses for monitoring systems:
``path("jobqueue/", include("django_jobqueue.monitoring.urls"))``."""

from __future__ import annotations

from django.db import connections, transaction
from django.urls import path

from django_jobqueue.monitoring import views

app_name = "jobqueue_monitoring"
urlpatterns = [
    path("metrics", views.metrics, name="metrics"),
    path("scale", views.scale, name="scale"),
]

# ATOMIC_REQUESTS would answer an outage of the database with an error.
for pattern in urlpatterns:
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(pattern.callback)
