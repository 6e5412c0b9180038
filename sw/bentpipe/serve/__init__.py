"""A folder of runs in the browser, on this machine alone: what there is, and what goes on."""
