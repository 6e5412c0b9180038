"""Losses in a pattern that repeats: the first cells of each so many."""
