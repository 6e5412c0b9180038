"""A memory that holds cells for the delay."""
