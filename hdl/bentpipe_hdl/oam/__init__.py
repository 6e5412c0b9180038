"""Operation and maintenance of connections (I.610)."""
