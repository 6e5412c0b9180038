"""Sessions with real hosts, measured (``make attach``)."""
