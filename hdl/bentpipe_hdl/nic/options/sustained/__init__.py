"""VCs with a sustained rate beside the peak one (dual leaky bucket, TM 4.1)."""
