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
    "django_jobqueue.contrib.alerts",
    "django_jobqueue.contrib.console",
    "django_jobqueue.contrib.http",
    "django_jobqueue.contrib.importing",
    "django_jobqueue.contrib.leases",
    "django_jobqueue.contrib.privacy",
    "django_jobqueue.contrib.remote",
    "django_jobqueue.contrib.schedules",
    "django_jobqueue.contrib.transfer",
]
# What the admin's own checks ask for.
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}}
