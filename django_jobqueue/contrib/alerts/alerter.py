"""Sends alerts: one process in the whole cluster, the holder of a lease, checks the
conditions, hands news to the channels and sends it, in a thread that nothing else
waits for."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.contrib.alerts import alert_rows, channels, signals
from django_jobqueue.contrib.alerts.alert_rows import Send
from django_jobqueue.contrib.alerts.alerted import alerts_are_on
from django_jobqueue.contrib.alerts.bounded_calls import BoundedCalls
from django_jobqueue.contrib.alerts.condition_watch import ConditionWatch
from django_jobqueue.contrib.alerts.http_post import NotSent, get
from django_jobqueue.contrib.alerts.notification import alert_of, notification_of
from django_jobqueue.contrib.alerts.states import AlertEvent
from django_jobqueue.contrib.leases import lease_rows
from django_jobqueue.contrib.leases.lease_rows import Beat, Claimant
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.log_events import Event
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.processes import identity
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store.connection import Database, OwnConnection

logger = logging.getLogger("django_jobqueue.alerts")

LEASE: Final = "jobqueue.alerts"
TTL: Final = 40.0  # seconds; of a killed holder, until another one goes on
PAUSE: Final = 5.0  # seconds between two rounds of the holder
TAKE_PAUSE: Final = 20.0  # seconds between two tries of the others
HEARTBEAT_EVERY: Final = 60.0
CHECK_EVERY: Final = 30.0
SENDS_AT_ONCE: Final = 20  # of a round
FIRST_WAIT: Final = 10.0  # seconds until the second attempt; doubled with each further
LONGEST_WAIT: Final = 3_600.0


def thread(
    db: Database, connect: Callable[[str], OwnConnection], host: object
) -> Alerter | None:
    """An alerter, where there is anything for it to do."""
    is_wanted = alerts_are_on() or conf.heartbeat_url is not None
    return Alerter(connect("alerts")) if is_wanted else None


class Alerter(Loop):
    """Hands over, plans, sends and checks, as long as it holds the lease."""

    name = "alerter"

    def __init__(self, connection: OwnConnection) -> None:
        super().__init__()
        self._connection = connection
        self._claimant = Claimant(
            name=LEASE,
            token=new_id(),
            ttl=TTL,
            holder=identity.name_of(os.getpid()),
            host=identity.host(),
        )
        self._is_holder = False
        self._conditions = ConditionWatch(connection)
        self._next_check = 0.0  # time.monotonic()
        self._next_heartbeat = 0.0  # time.monotonic()
        self._heartbeat_failed = False
        self._calls = BoundedCalls()

    def tick(self) -> float:
        """One round; without the lease, a try to take it."""
        if not self._hold():
            self._connection.close()
            return TAKE_PAUSE
        self._send_heartbeat()
        if alerts_are_on():
            self._hand_over()
            self._deliver()
            self._check_conditions()
        return PAUSE

    def close(self) -> None:
        """Let another process go on at once."""
        if self._is_holder:
            claimant = self._claimant
            lease_rows.release(self._connection, claimant.name, claimant.token)
        self._connection.close()

    def _hold(self) -> bool:
        """Renew the lease, or take it if it is free."""
        claimant = self._claimant
        if self._is_holder:
            beat = Beat(claimant.name, claimant.token, claimant.ttl)
            held = lease_rows.renew(self._connection, [beat])
            self._is_holder = claimant.token in held
        if not self._is_holder:
            answer = lease_rows.take(self._connection, claimant)
            self._is_holder = answer.fence > 0
            if self._is_holder:
                self._conditions.forget()
                logger.info("This host sends alerts: it holds the lease %r", LEASE)
        return self._is_holder

    def _hand_over(self) -> None:
        with self._connection.transaction() as db:
            news = alert_rows.hand_over(db, conf.alerts)
        for one in news:
            is_over = one.event == AlertEvent.RESOLVED
            signal = signals.alert_resolved if is_over else signals.alert_fired
            if one.event != AlertEvent.REPEATED:
                announcer.send(signal, one.condition, alert=alert_of(one))

    def _deliver(self) -> None:
        by_name = {channel.name: channel for channel in conf.alerts}
        for name in by_name:
            alert_rows.plan(self._connection, name)
        due = alert_rows.due(self._connection, list(by_name), SENDS_AT_ONCE)
        for send in due:
            if self._stop_requested.is_set() or not self._hold():
                return
            content = alert_rows.content(self._connection, send)
            notification = notification_of(send.id, content)
            deliver = partial(channels.send, by_name[send.channel], notification)
            try:
                self._calls.call(send.channel, deliver)
            except NotSent as error:
                self._failed(send, error)
            else:
                alert_rows.sent(self._connection, send)

    def _check_conditions(self) -> None:
        now = time.monotonic()
        if now >= self._next_check:
            self._next_check = now + CHECK_EVERY
            self._conditions.check()

    def _failed(self, send: Send, error: NotSent) -> None:
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(send.attempts, 20))
        is_over = alert_rows.failed(self._connection, send, str(error), wait)
        logger.log(
            logging.ERROR if is_over else logging.WARNING,
            "The channel %r did not accept an alert (%s); it is %s",
            send.channel,
            error,
            "given up" if is_over else f"sent again in {wait:g} s",
            exc_info=error.__cause__,
            extra={"event": Event.ALERT_NOT_SENT},
        )

    def _send_heartbeat(self) -> None:
        now = time.monotonic()
        if conf.heartbeat_url is None or now < self._next_heartbeat:
            return
        self._next_heartbeat = now + HEARTBEAT_EVERY
        try:
            self._calls.call("HEARTBEAT_URL", partial(get, conf.heartbeat_url))
        except NotSent as error:
            if not self._heartbeat_failed:
                logger.warning("HEARTBEAT_URL did not accept a request: %s", error)
            self._heartbeat_failed = True
        else:
            self._heartbeat_failed = False
