"""The header check in each of its modes, for every header: which errors it corrects, which it discards."""

from itertools import combinations

from amaranth.hdl import Cat

from bentpipe_hdl.hec import HecReceiver, error_syndrome, hec
from formal.proof import Probe, Proof, Spec

SINGLE = [1 << i for i in range(40)]
DOUBLE = [a | b for a, b in combinations(SINGLE, 2)]


def _proof():
    receiver = HecReceiver()
    spec = Spec(Probe(receiver))
    header, error = spec.any(32, "header"), spec.any(40, "error")
    received = spec.value(Cat(hec(header), header) ^ error, "received")
    spec.condition("received", receiver.check, receiver.syndrome == hec(received[8:]) ^ received[:8])
    spec.condition("pattern", receiver.check, receiver.syndrome == error_syndrome(error))
    spec.condition("correction", ~receiver.detection)
    spec.condition("detection", receiver.detection)
    spec.condition("no_start", ~receiver.start)
    spec.condition("good", receiver.accept, ~receiver.correct, ~receiver.discard)
    spec.condition("corrected", receiver.accept, receiver.correct, ~receiver.discard, receiver.flip == error)
    spec.condition("discarded", ~receiver.accept, ~receiver.correct, receiver.discard)
    return Proof("hec", spec)


def test_corrects_single_errors_and_never_double_ones():
    proof = _proof()
    correction, detection = ["received", "correction"], ["received", "detection"]
    single, double = [{"error": e} for e in SINGLE], [{"error": e} for e in DOUBLE]
    for given in (correction, detection):
        assert proof.follows_in_cases("good", given=given, cases=[{"error": 0}]) is None
    assert proof.follows_in_cases("corrected", given=correction, cases=single) is None
    assert proof.follows_in_cases("discarded", given=correction, cases=double) is None
    assert proof.follows_in_cases("discarded", given=detection, cases=single) is None
    assert proof.follows_in_cases("discarded", given=correction, cases=single[:1]) is not None


def test_an_error_leads_to_detection_and_a_good_header_back():
    proof = _proof()
    assert proof.holds_at_reset("correction") is None
    for verdict, mode in (("good", "correction"), ("corrected", "detection"), ("discarded", "detection")):
        assert proof.leads_to(mode, given=["received", verdict, "no_start"]) is None
    assert proof.leads_to("correction", given=["received", "corrected", "no_start"]) is not None


def test_a_syndrome_is_that_of_the_error_alone():
    proof = _proof()
    assert proof.follows_in_cases("pattern", given=["received"], cases=[{"error": e} for e in (0, *SINGLE)]) is None
