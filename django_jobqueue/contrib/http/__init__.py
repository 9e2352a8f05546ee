"""The HTTP API: what programs in any language enqueue and ask by.

``path("jobqueue/", include("django_jobqueue.contrib.http.urls"))`` mounts it.
"""
