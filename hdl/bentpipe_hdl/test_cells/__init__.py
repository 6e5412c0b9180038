"""Test cells: their format, and the parts that make and analyse them in hardware. Start at :mod:`.cells`."""
