from django.apps import AppConfig


class SampleConfig(AppConfig):
    name = "tests.sample"

    def ready(self) -> None:
        from tests.sample import faults, paths, programs, telemetry  # noqa: F401

        faults.install()
        telemetry.install()
