"""Jobs about orders of customers, as people on call have them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from django_jobqueue import job


@job(max_attempts=1, summary="order {order_id} of {customer}", timeout=600)
def charge_order(order_id: Any, customer: str, bank: str) -> str:
    """Charge an order: the bank is open while there is this file."""
    if not Path(bank).exists():
        raise ConnectionError(f"the bank refuses order {order_id}")
    return f"charged {customer}"


@job(concurrency=1, summary="order {order_id} of {customer}", timeout=600)
def pack_order(order_id: Any, customer: str, shelf: str) -> None:
    """Pack an order: wait until somebody fills the shelf, a file."""
    while not Path(shelf).exists():
        time.sleep(0.02)
