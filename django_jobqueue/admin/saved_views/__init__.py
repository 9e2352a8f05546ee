"""Views of lists that users saved, for themselves or for all."""

from django_jobqueue.admin.saved_views import departed_users as departed_users
