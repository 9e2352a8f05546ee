"""Who moves jobs: a supervisor, its worker processes, and the loops inside them."""
