"""Tokens of the HTTP API: which there are, making and revoking them."""

from django.contrib import admin

from django_jobqueue.admin.lazy_page import lazy_page
from django_jobqueue.contrib.http.models import Token

admin.site.register(
    Token, lazy_page("django_jobqueue.contrib.http.admin.token_list.TokenAdmin")
)
