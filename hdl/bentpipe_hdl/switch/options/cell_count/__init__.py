"""A count of cells for each VC, with an interrupt when it reaches a threshold."""
