"""The shop's settings, for pages that are looked at: where the code seems to be, and
a name for the release."""

from testproject.settings import *  # noqa: F403
from testproject.settings import BASE
from testproject.settings import JOBQUEUE as SHOP

HOME = "/srv/shop"
SHOP_URL = "http://127.0.0.1:9"  # where nobody answers
DEBUG = True  # so that the development server sends static files
JOBQUEUE = {
    **SHOP,
    "PROJECT_ROOTS": [str(BASE / "testproject"), f"{HOME}/testproject"],
    "RELEASE": "2026.11.3",
    "ENDPOINTS": {
        "carrier": {"url": "https://carrier.example", "secrets": [], "concurrency": 20}
    },
}
