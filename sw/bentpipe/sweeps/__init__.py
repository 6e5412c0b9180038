"""Sweeps: an experiment run for all combinations of settings, cases and seeds, on a cluster of processes."""
