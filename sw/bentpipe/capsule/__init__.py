"""Run capsules: runs with all that makes them again, as an RO-Crate."""
