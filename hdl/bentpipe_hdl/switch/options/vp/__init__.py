"""Virtual path connections."""
