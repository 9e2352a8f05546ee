"""Remote handlers: jobs that other programs do, and how their attempts end."""
