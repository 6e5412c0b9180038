"""Waves: what a node did in some ticks of a run, every signal of its RTL, as a VCD.

:mod:`.recorder` keeps what the node's ports did in the native engine, and its state before; :mod:`.state` finds in that
state the registers and memories of the RTL; :mod:`.replay` goes on from there in Amaranth's simulator with the same
inputs, and holds what comes out against the recorded; :mod:`.vcd` writes it.
"""
