"""The shop as an app; its label is ``shop``."""

from __future__ import annotations

from django.apps import AppConfig


class ShopConfig(AppConfig):
    """Connects the signal that announces orders."""

    name = "testproject.shop"
    label = "shop"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import the receivers."""
        from testproject.shop import signals  # noqa: F401
