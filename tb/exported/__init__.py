"""Check that Verilog of ``bentpipe rtl`` means in each simulator the same as the RTL in Amaranth's own.

``python -m exported`` (``make rtl-check``) is the whole check; :mod:`exported.nodes` has the nodes and their traffic,
:mod:`exported.reference` the trace of Amaranth's simulator, :mod:`exported.simulators` those of the others.
"""
