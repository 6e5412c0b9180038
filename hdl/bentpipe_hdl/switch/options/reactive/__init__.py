"""Load-reactive ports: the capacity follows the queue."""
