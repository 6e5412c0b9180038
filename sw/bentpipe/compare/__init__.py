"""Runs held against each other and against published figures."""
