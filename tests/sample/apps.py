from django.apps import AppConfig


class SampleConfig(AppConfig):
    name = "tests.sample"

    def ready(self) -> None:
        from tests.sample import faults, orders, paths, programs  # noqa: F401

        faults.install()
