"""The exporter process: answers scrapes and probes of one runworkers."""
