"""Listed losses: every link has them."""
