"""Personal data: find, erase, delete, and the record of it."""

from django.contrib import admin

from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.contrib.privacy.models import Erasure

admin.site.register(
    Erasure,
    lazy_page("django_jobqueue.contrib.privacy.admin.erasure_admin.ErasureAdmin"),
)
