"""What processes and threads need to live side by side: loops, idleness, identity."""
