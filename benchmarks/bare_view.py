"""A view of a few lines that enqueues: what the HTTP API is compared with."""

from __future__ import annotations

import json
from typing import Final
from uuid import uuid4

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

INSERT: Final = """
INSERT INTO jobqueue_queuedjob (id, job_type, data) VALUES (%s, %s, %s)
"""


@csrf_exempt
def bare(request: HttpRequest, job_type: str) -> HttpResponse:
    """Read JSON and insert a row."""
    data = json.loads(request.body)["data"]
    with connection.cursor() as cursor:
        cursor.execute(INSERT, [uuid4(), job_type, json.dumps(data)])
    return HttpResponse("{}", status=202, content_type="application/json")
