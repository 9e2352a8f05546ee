"""Leases by name: who holds which, and taking one away."""

from django.contrib import admin

from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.contrib.leases.models import Lease

admin.site.register(
    Lease, lazy_page("django_jobqueue.contrib.leases.admin.lease_list.LeaseAdmin")
)
