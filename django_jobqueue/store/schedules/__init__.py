"""The rows of schedules: declared by the code, fired on time, changed by operators."""
