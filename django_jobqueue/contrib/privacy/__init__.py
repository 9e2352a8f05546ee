"""Personal data: find a value in all tables, erase it, or delete the rows."""
