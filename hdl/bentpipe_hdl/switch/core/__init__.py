"""The parts that every switch has. None of them knows an option: what options add comes as arguments and fields.

Start at :mod:`.core`, which puts them together.
"""
