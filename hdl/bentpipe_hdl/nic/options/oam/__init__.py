"""Single cells of the host, and OAM cells for it."""
