"""What a job is and what an attempt comes to: no database is needed here."""
