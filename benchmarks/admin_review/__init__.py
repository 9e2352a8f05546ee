"""The admin on millions of jobs: each page, the search for one job, and the exports."""
