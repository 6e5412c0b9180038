"""The host's side of an FPGA board: frames, pipes, the client, register windows, the network in lockstep."""
