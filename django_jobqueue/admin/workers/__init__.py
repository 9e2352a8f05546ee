"""Worker processes: who lives, what each does, and what it is asked."""
