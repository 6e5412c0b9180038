"""Shaping of VCs by two buckets each."""
