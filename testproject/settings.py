SECRET_KEY="x"
INSTALLED_APPS=["django.contrib.contenttypes","django.contrib.auth","django.contrib.sessions","django.contrib.messages","django.contrib.admin","django_jobqueue"]
USE_TZ=True
DATABASES={"default":{"ENGINE":"django.db.backends.postgresql","HOST":"/tmp/lab/pg18","USER":"postgres","NAME":"jq"}}
