"""Selective drop and fair buffer allocation."""
