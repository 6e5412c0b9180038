"""A line that has slots for cells in frames."""
