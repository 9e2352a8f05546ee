"""Personal data: find, erase, delete, and the record of it."""
