"""Check that the commands, Python and TOML of the manual work as they stand: ``make docs-check``."""
