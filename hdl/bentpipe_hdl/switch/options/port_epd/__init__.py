"""Early packet discard by the queue of a port."""
