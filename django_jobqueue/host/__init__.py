"""One host: a supervisor, its child processes, and what fences them."""
