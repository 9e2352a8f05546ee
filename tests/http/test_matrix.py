"""Each operation of the API: callers that may, and callers that may not."""
