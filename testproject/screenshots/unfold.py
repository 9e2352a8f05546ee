"""The same pages under django-unfold:
``python -m testproject.screenshots FOLDER --settings testproject.screenshots.unfold``.
"""

from testproject.screenshots.settings import *  # noqa: F403
from testproject.screenshots.settings import INSTALLED_APPS as SHOP

INSTALLED_APPS = ["unfold", *SHOP]
