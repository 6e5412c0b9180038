"""Marks of what the simulation may compute by a function of C++ in the place of its gates.

They change nothing in hardware. The native engine (:mod:`bentpipe_sim.native`) takes the result from the function
``name`` of ``csrc``, and leaves out the gates that only the result needs; tests hold each function against its gates.
"""

from amaranth.hdl import Signal

__all__ = ["computed"]


def computed(name: str, which: str, result: Signal, *arguments: Signal) -> Signal:
    """Mark ``result`` as the value of the function ``name`` of ``arguments``, each a signal of its own; return
    ``result``.

    ``which`` tells apart the calls of one node.
    """
    result.attrs["bentpipe_result"] = f"{name} {which}"
    for k, argument in enumerate(arguments):
        argument.attrs["bentpipe_argument"] = f"{name} {which} {k}"
    return result
