"""Which jobs a worker claims, how many, and when."""
