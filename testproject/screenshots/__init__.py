"""``make screenshots``: every page of the admin, from a scene of seeded rows."""
