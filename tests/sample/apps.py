from django.apps import AppConfig


class SampleConfig(AppConfig):
    name = "tests.sample"

    def ready(self) -> None:
        from tests.sample import (  # noqa: F401
            faults,
            orders,
            paths,
            programs,
            storm,
            telemetry,
        )

        faults.install()
        telemetry.install()
