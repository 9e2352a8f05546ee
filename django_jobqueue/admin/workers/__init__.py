"""Worker processes: their list, their page, and requests to them."""
