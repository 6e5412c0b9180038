"""The native engine: C++ straight from Amaranth's netlist.

One pass after the other, each a module: the netlist as Amaranth has it (:mod:`.netlist`), the fields of its words
(:mod:`.fields`), a graph of values that folds (:mod:`.graph`, :mod:`.design`), conditions (:mod:`.guards`), statements
and their order (:mod:`.schedule`), their text (:mod:`.cpp`), a node with its bodies (:mod:`.node`), its library
(:mod:`.library`).
"""
