"""The same pages under django-jazzmin:
``python -m testproject.screenshots FOLDER --settings testproject.screenshots.jazzmin``.
"""

from testproject.screenshots.settings import *  # noqa: F403
from testproject.screenshots.settings import INSTALLED_APPS as SHOP

INSTALLED_APPS = ["jazzmin", *SHOP]
