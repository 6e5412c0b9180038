"""Runs the cell path: Verilated nodes in a native event loop, and the interface that the hosts see."""
