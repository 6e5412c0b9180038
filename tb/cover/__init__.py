"""Coverage of the tests: branches of Python, and lines and toggles of the RTL. ``make coverage`` writes
docs/coverage.md.

Start with ``__main__`` (the command), ``python`` and ``rtl`` (the measurements), ``page`` (the tables).
"""
