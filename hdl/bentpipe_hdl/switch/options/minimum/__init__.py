"""Cells of the buffer that are reserved for each VC."""
