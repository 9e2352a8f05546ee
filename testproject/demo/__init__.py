"""``python -m testproject.demo``: the whole shop at work, until Ctrl-C or once."""
