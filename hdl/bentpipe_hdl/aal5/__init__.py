"""AAL type 5: CRC-32, segmentation, reassembly (I.363.5)."""
