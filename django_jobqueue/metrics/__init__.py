"""The metrics for Prometheus: their catalogue, their text, and the cluster's."""
