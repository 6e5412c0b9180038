"""A limit of the frames that are queued for a port."""
