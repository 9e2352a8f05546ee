"""What people and programs read of jobs. Nothing here changes a row."""
