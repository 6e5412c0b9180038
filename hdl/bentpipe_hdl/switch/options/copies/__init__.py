"""Point-to-multipoint VCs: cells are copied, one for each leaf."""
