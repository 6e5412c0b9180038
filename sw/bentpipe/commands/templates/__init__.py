"""Templates that ``bentpipe new --plugin`` writes: models that work as they are. ``my_model`` becomes the name that
is given."""
