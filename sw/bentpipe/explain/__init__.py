"""What the published figures hang on: open parameters of experiments, and the ranges that they span."""
