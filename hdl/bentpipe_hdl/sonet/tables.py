"""The tables of SONET: alarms, counters, overhead that is set and received."""

from dataclasses import dataclass

__all__ = ["ALARMS", "COUNTERS", "FORCE", "FRAMER_SETTINGS", "RECEIVED", "Alarm"]


@dataclass(frozen=True)
class Alarm:
    """A row of the alarm table: ``name`` is the field of :class:`~bentpipe_hdl.sonet.alarms.Defects`."""

    name: str
    title: str
    enter: str
    leave: str
    action: str


ALARMS = (
    Alarm(
        "los",
        "LOS",
        "zeros for 20 us, or no signal",
        "2 good framing patterns in a row, no such time between",
        "RDI-L, AIS-P inside",
    ),
    Alarm("sef", "SEF (OOF)", "4 errored framing patterns in a row", "2 good ones in a row", "search"),
    Alarm(
        "lof",
        "LOF",
        "24 frames (3 ms) of SEF, added up",
        "24 frames in frame in a row",
        "RDI-L, AIS-P inside",
    ),
    Alarm("ais_l", "AIS-L", "K2 bits 6-8 = 111 in 5 frames", "not 111 in 5 frames", "RDI-L, no cells"),
    Alarm("rdi_l", "RDI-L", "K2 bits 6-8 = 110 in 5 frames", "not 110 in 5 frames", ""),
    Alarm("tim_s", "TIM-S", "3 messages in J0 unlike the expected one", "3 like it", ""),
    Alarm("ais_p", "AIS-P", "all N STS-1 in AIS: H1, H2 all ones in 3 frames", "an STS-1 not in AIS", "RDI-P 101"),
    Alarm(
        "lop_p",
        "LOP-P",
        "reset; 8 invalid pointers, 8 NDF or 8 wrong concatenation indications in a row; some STS-1 in AIS",
        "3 equal valid pointers and 3 concatenation indications, or AIS-P",
        "RDI-P 101",
    ),
    Alarm("uneq_p", "UNEQ-P", "C2 = 00 in 5 frames", "not 00 in 5 frames", "RDI-P 110, no cells"),
    Alarm(
        "plm_p",
        "PLM-P",
        "C2 none of 00, 01, the expected one in 5 frames",
        "01 or the expected one in 5 frames",
        "RDI-P 010",
    ),
    Alarm("tim_p", "TIM-P", "3 messages in J1 unlike the expected one", "3 like it", "RDI-P 110"),
    Alarm("rdi_p", "RDI-P", "a code in G1 bits 5-7 in 10 frames", "another code in 10 frames", ""),
    Alarm("ocd", "OCD", "7 bad headers in a row", "SYNC: 6 good headers in a row", ""),
    Alarm("lcd", "LCD-P", "32 frames (4 ms) of OCD", "32 frames of SYNC", "RDI-P 010"),
)

COUNTERS = {
    "frames": "frames received (also while out of frame)",
    "b1": "bit errors found by B1",
    "b2": "bit errors found by B2",
    "b3": "bit errors found by B3",
    "rei_l": "bit errors that the far end's B2 found (M1)",
    "rei_p": "bit errors that the far end's B3 found (G1)",
    "sef": "times that framing was lost",
    "positive": "positive pointer movements received",
    "negative": "negative pointer movements received",
    "new_pointer": "new pointer values taken, without or with NDF",
    "ndf": "new pointer values taken with NDF",
    "sent_positive": "positive pointer movements sent",
    "sent_negative": "negative pointer movements sent",
    "rx_user": "user cells received, corrected ones included",
    "rx_idle": "idle and unassigned cells received",
    "corrected": "user cells whose header was corrected",
    "discarded": "cells discarded for their header",
    "ocd": "times that cell delineation was lost",
    "tx_user": "user cells sent",
    "tx_idle": "idle cells sent",
}
"""Counters of a termination, in the order of their registers. All wrap at 2**32."""

FRAMER_SETTINGS = {
    "e1": (8, 0),
    "f1": (8, 0),
    "e2": (8, 0),
    "dcc1": (24, 0),
    "dcc2": (24, 0),
    "dcc3": (24, 0),
    "dcc4": (24, 0),
    "k1": (8, 0),
    "k2": (8, 0),
    "s1": (8, 0),
    "c2": (8, 0x13),
    "f2": (8, 0),
    "h4": (8, 0),
    "z3": (8, 0),
    "z4": (8, 0),
    "n1": (8, 0),
    "ss": (2, 0),
}
"""Overhead that is sent as it is set: name -> (bits, after reset). Multi-byte ones: first byte in the low bits."""

RECEIVED = {
    "j0": 8,
    "e1": 8,
    "f1": 8,
    "e2": 8,
    "dcc1": 24,
    "dcc2": 24,
    "dcc3": 24,
    "dcc4": 24,
    "k1": 8,
    "k2": 8,
    "s1": 8,
    "m1": 8,
    "j1": 8,
    "c2": 8,
    "g1": 8,
    "f2": 8,
    "h4": 8,
    "z3": 8,
    "z4": 8,
    "n1": 8,
}
"""Overhead bytes as received: name -> bits."""

FORCE = {
    "los": "zeros on the line",
    "framing": "A1 inverted",
    "ais_l": "all ones but the section overhead",
    "ais_p": "all ones in the SPE, H1, H2 and H3",
    "rdi_l": "RDI-L",
    "b1": "B1 inverted",
    "b2": "B2 inverted",
    "b3": "B3 inverted",
    "pointer": "NDF bits inverted: in each frame, a new pointer",
    "concatenation": "H1, H2 of the other STS-1 as those of the first",
}
"""What a framer does wrong on purpose, a bit each."""
