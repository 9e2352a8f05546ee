"""What monitoring systems ask your site for, by HTTP."""
