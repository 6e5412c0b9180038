"""FIFO ports, weighted round robin and strict priority."""
