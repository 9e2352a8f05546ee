"""The screen of ``jobqueue top``, drawn by textual."""
