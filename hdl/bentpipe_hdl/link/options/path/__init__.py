"""A delay that changes in a run: what becomes of the cells under way."""
