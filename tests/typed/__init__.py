"""What type checkers say about calls of handlers."""
