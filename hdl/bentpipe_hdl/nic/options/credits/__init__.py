"""VCs that wait for credit of their switch."""
