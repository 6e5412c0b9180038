"""Usage parameter control (UPC) by two buckets a VC."""
