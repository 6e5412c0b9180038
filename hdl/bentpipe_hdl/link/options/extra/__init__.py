"""Cells that a link makes: duplicates of those that it carries, and misinserted ones."""
