"""Virtual clock scheduling."""
