"""Runs compared with each other and against published figures."""
