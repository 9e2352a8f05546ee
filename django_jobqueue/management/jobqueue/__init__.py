"""The parts of ``manage.py jobqueue``: one file for each subcommand, and what they
share."""
