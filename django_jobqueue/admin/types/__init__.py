"""Job types and queues: policies, pauses, figures."""
