"""The header check corrects every single error and takes no double one for it, for every header."""

from itertools import combinations

from amaranth.hdl import Cat

from bentpipe_hdl.hec import HecCorrector, hec
from formal.proof import Proof, Spec


def _proof():
    corrector = HecCorrector()
    spec = Spec()
    spec.m.submodules.dut = corrector
    header, error = spec.any(32, "header"), spec.any(40, "error")
    sent = spec.value(Cat(hec(header), header), "sent")
    spec.m.d.comb += corrector.header.eq(sent ^ error)
    spec.condition("good", corrector.good, ~corrector.correctable, corrector.corrected == sent)
    spec.condition("corrected", ~corrector.good, corrector.correctable, corrector.corrected == sent)
    spec.condition("refused", ~corrector.good, ~corrector.correctable, corrector.corrected == corrector.header)
    return Proof("hec", spec)


def test_corrects_single_errors_and_never_double_ones():
    proof = _proof()
    single = [1 << i for i in range(40)]
    double = [a | b for a, b in combinations(single, 2)]
    assert proof.follows_in_cases("good", given=[], cases=[{"error": 0}]) is None
    assert proof.follows_in_cases("corrected", given=[], cases=[{"error": e} for e in single]) is None
    assert proof.follows_in_cases("refused", given=[], cases=[{"error": e} for e in double]) is None
    assert proof.follows_in_cases("refused", given=[], cases=[{"error": 1}]) is not None
