from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("jobs/", include("django_jobqueue.urls")),
    path("jobqueue/", include("django_jobqueue.monitoring.urls")),
    path("jobqueue/", include("django_jobqueue.contrib.http.urls")),
    path("", include("testproject.shop.urls")),
]
