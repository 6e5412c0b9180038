"""Causes behind the published figures: open parameters of experiments, and the ranges that they span."""
