"""``jobqueue metrics``: the metrics of the cluster."""

from __future__ import annotations

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.subcommand import Options, Subcommand
from django_jobqueue.metrics import cluster_figures
from django_jobqueue.metrics.exposition import Exposition
from django_jobqueue.store.connection import DjangoDatabase


class Metrics(Subcommand):
    name = "metrics"
    summary = "Print the metrics of the cluster for Prometheus."
    description = """\
Print the metrics of the cluster as Prometheus reads them, such as for the
textfile collector of node_exporter, or to look at them:

  jobqueue metrics > /var/lib/node_exporter/jobqueue.prom.new

They are at most METRICS_MAX_AGE old. If the database does not answer,
jobqueue_database_up is 0, and the others are missing."""

    def run(self, console: Console, options: Options) -> None:
        exposition = Exposition()
        answer = exposition.render(cluster_figures.read(DjangoDatabase()))
        console.print(answer.body.decode(), ending="")
