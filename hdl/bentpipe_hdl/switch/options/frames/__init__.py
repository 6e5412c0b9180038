"""Ports that send cells in the slots of frames."""
