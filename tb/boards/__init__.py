"""Helpers that tests of boards share."""
