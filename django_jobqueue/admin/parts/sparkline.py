"""A sparkline in a cell of a list."""

from __future__ import annotations

from django.utils.html import format_html
from django.utils.safestring import SafeString

from django_jobqueue.admin.parts.charts import Spark


def sparkline(spark: Spark) -> SafeString:
    """A tiny drawing, whose summary is its text."""
    return format_html(
        '<svg class="jq-spark" role="img" aria-label="{}" viewBox="0 0 {} 20" '
        'preserveAspectRatio="none"><title>{}</title>'
        '<path class="jq-is-retried" d="{}"/><path class="jq-is-failed" d="{}"/></svg>',
        spark.summary,
        spark.width,
        spark.summary,
        spark.all,
        spark.failed,
    )
