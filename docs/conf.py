"""How the documentation is built: ``sphinx-build -W -b html docs docs/_build/html``.

The reference is rendered from the package itself, which needs Django to be set up; no
database is asked anything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import django
from django.conf import settings

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]
os.environ["COLUMNS"] = "80"  # of the help texts
os.environ["NO_COLOR"] = "1"

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "docs"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.admin",
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
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
    ],
    SECRET_KEY="docs",
    USE_TZ=True,
)
django.setup()

from django_jobqueue import __version__  # noqa: E402

project = "django_jobqueue"
author = "The django_jobqueue maintainers"
copyright = f"2026, {author}"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "myst_parser",
    "jobqueue_docs",
]
exclude_patterns = ["_build", "_ext", "_static", "inventories"]
html_theme = "furo"
html_title = "django_jobqueue"
html_static_path = ["_static"]
html_css_files = ["jobqueue.css"]
html_copy_source = False
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

# The names that these pages link to are in files of this repository, so that a build
# needs no network. To link to another name, add a line to the file: name, type, page.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", "inventories/python.txt"),
    "django": ("https://docs.djangoproject.com/en/stable", "inventories/django.txt"),
}

copybutton_prompt_text = "$ "  # of a terminal: only what is typed is copied
copybutton_line_continuation_character = "\\"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 72
suppress_warnings = ["myst.xref_ambiguous"]
