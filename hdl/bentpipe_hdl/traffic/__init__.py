"""Traffic management: pacing and its schedule."""
