"""Real hosts through the emulated network, in real time."""
