"""Jobs, and the outcomes of attempts, without a database."""
