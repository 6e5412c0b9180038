"""Credits, hop by hop: their cells, and who keeps them (docs/traffic-management.md)."""
