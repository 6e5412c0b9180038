"""A generator and an analyser of test cells."""
