"""Netlists as yosys makes them for an ECP5, beside the RTL that they are made of: ``make test-netlist``.

``cells.h`` has the models of cells, :mod:`netlist.simulation` makes a library of a netlist, :mod:`netlist.nodes` has
the nodes and plays random traffic into both.
"""
