"""What a host does beside running jobs: renews leases, rescues, expires, prunes."""
