"""Cell delay variation, and cells that overtake others: a random time for each cell."""
