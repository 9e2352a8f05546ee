"""What the demo needs in its database and its folder."""

from __future__ import annotations

from typing import Final

from django.contrib.auth import get_user_model
from django.core.management import call_command

USER: Final = "admin"
PASSWORD: Final = "admin"


def prepare() -> None:
    """Migrate, make a user for the admin, load the shop."""
    call_command("migrate", verbosity=0)
    users = get_user_model()._default_manager
    if not users.filter(username=USER).exists():
        users.create_superuser(USER, "admin@harbour.example", PASSWORD)
    call_command("load_shop")
