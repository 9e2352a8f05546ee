"""What others know of jobs: OpenTelemetry and Sentry, by one observer each."""
