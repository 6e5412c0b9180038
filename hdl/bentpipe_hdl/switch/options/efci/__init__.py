"""Explicit forward congestion indication (EFCI)."""
