"""Lists that stay fast on millions of rows: filters, pages, counts, conditions."""
