"""Credits, hop by hop: a VC sends only what the next switch has places for."""
