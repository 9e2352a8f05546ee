"""Tests of jobs: run them, look for them, move time, let workers die."""

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.testing.asserting import assert_enqueued, assert_not_enqueued
from django_jobqueue.testing.capturing import CapturedJobs, captured_jobs
from django_jobqueue.testing.clocks import Clock, clock
from django_jobqueue.testing.draining import EndlessDrain, adrain, drain
from django_jobqueue.testing.faults import crash, lose_lease
from django_jobqueue.testing.inline import Ran
from django_jobqueue.testing.mixins import JobQueueTestMixin, JobQueueVerbs, WorkerMixin
from django_jobqueue.testing.performing import Performed, aperform, perform

__all__ = [
    "CapturedJobs",
    "Clock",
    "EndlessDrain",
    "JobQueueTestMixin",
    "JobQueueVerbs",
    "Outcome",
    "Performed",
    "Ran",
    "Verb",
    "WorkerMixin",
    "adrain",
    "aperform",
    "assert_enqueued",
    "assert_not_enqueued",
    "captured_jobs",
    "clock",
    "crash",
    "drain",
    "lose_lease",
    "perform",
]
