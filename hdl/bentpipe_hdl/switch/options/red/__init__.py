"""Random early detection (RED) on frames."""
