"""Settings for tools that only read code; no server is started."""

SECRET_KEY = "static"
USE_TZ = True
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "rangefilter",
    "django_jobqueue",
]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}}
