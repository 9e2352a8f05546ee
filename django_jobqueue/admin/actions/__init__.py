"""Actions: the buttons of the admin's pages, with rights, questions and log entries."""
