"""Text for people: masking, cutting, numbers, durations, suggestions. Pure."""
