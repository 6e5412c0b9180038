"""A SONET line as software sees it: its registers, and those of the terminals at its ends."""

from __future__ import annotations

from bentpipe_hdl.bit_errors import GAP_BITS
from bentpipe_hdl.registers import Field, Register, RegisterMap
from bentpipe_hdl.sonet.tables import ALARMS, COUNTERS, FORCE, FRAMER_SETTINGS, RECEIVED

__all__ = ["AFTER_RESET", "TERMINAL", "WAITING", "WAITING_MOVES", "sonet_registers"]

WAITING = 16
"""Cells that wait at an end of a line, at most."""

WAITING_MOVES = 16
"""Pointer movements that wait for their time."""

AFTER_RESET = {"sef": 1, "lop_p": 1}
"""Defects that stand after reset: frame and pointer are still to be found."""

_DEFECTS = tuple(Field(alarm.name, k, text=alarm.title) for k, alarm in enumerate(ALARMS))
_SENT = {"e1": 0x20, "f1": 0x21, "e2": 0x22, "k1": 0x23, "k2": 0x24, "s1": 0x25, "c2": 0x26, "f2": 0x27}
_SENT |= {"h4": 0x28, "z3": 0x29, "z4": 0x2A, "n1": 0x2B, "ss": 0x2C}
_SENT |= {"dcc1": 0x2D, "dcc2": 0x2E, "dcc3": 0x2F, "dcc4": 0x30}

TERMINAL = RegisterMap(
    "terminal",
    "",
    1,
    {},
    (
        Register(
            "defects", 0x00, "Defects now.", "ro", len(ALARMS), fields=_DEFECTS,
            reset=sum(1 << k for k, alarm in enumerate(ALARMS) if alarm.name in AFTER_RESET),
        ),
        Register(
            "changed", 0x01, "Defects that were raised or cleared.", "ro", len(ALARMS), fields=_DEFECTS,
            on_write="ones written are taken away",
        ),
        Register("interrupt_mask", 0x02, "Bits of `changed` that raise `irq`.", width=len(ALARMS), fields=_DEFECTS),
        Register(
            "state", 0x03, "State of the receiver.", "ro",
            fields=(
                Field("cells", 0, 2, "0 HUNT, 1 PRESYNC, 2 SYNC"),
                Field("rdi_p_code", 4, 3, "G1 bits 5 to 7 as 10 frames agreed"),
                Field("pointer", 8, 10, "received pointer"),
                Field("sent_pointer", 20, 10, "pointer sent"),
                Field("in_frame", 31),
            ),
        ),
        Register("latch", 0x04, "Copies the counters and clears them.", "wo", on_write="any value"),
        Register(
            "mode", 0x08, "What is done by itself.", width=12, reset=0b11,
            fields=(
                Field("auto_rdi", 0, text="send RDI-L and RDI-P (1 after reset)"),
                Field("auto_rei", 1, text="send REI-L and REI-P (1 after reset)"),
                Field("tim_s", 2, text="compare J0"),
                Field("tim_p", 3, text="compare J1"),
                Field("j0_sent_form", 4, 2, "0 one byte, 1 sixteen, 2 sixty-four"),
                Field("j1_sent_form", 6, 2, "the same"),
                Field("j0_form", 8, 2, "the same, expected"),
                Field("j1_form", 10, 2, "the same, expected"),
            ),
        ),
        Register(
            "force", 0x09, "Wrong on purpose, as long as set.", width=len(FORCE),
            fields=tuple(Field(name, k, text=text) for k, (name, text) in enumerate(FORCE.items())),
        ),
        Register("hec_mask", 0x0A, "Added to the HEC of each cell sent.", width=8),
        Register("c2_expected", 0x0B, "Signal label that is right; 13 hex after reset.", width=8, reset=0x13),
        Register(
            "drift", 0x0C,
            "How much slower the path's clock is than the line's: units of N bytes a frame, in 2**-24, signed 24 bits; "
            "1 ppm is 13136.56.",
            width=24,
        ),
        Register(
            "move", 0x0D,
            "One pointer movement: jump, else increment, else decrement. They wait for their time, up to "
            f"{WAITING_MOVES} of them; what comes then is refused, and counted.",
            "wo",
            fields=(
                Field("increment", 0), Field("decrement", 1), Field("jump", 2, text="to `target`, with NDF"),
                Field("target", 16, 10),
            ),
            on_write="the movement is asked for",
        ),
        Register(
            "moves", 0x0E, "What became of `move`.", "ro",
            fields=(Field("waiting", 0, 5), Field("refused", 16, 16, "wraps")),
        ),
        Register(
            "trace", 0x10, "Writes a byte of a trace message.", "wo",
            fields=(
                Field("byte", 0, 8), Field("index", 8, 6),
                Field("message", 16, 2, "0 J0 sent, 1 J1 sent, 2 J0 expected, 3 J1 expected"),
            ),
            on_write="the byte is written",
        ),
        *(
            Register(f"sent_{name}", addr, f"{name.upper()} to be sent.", width=bits, reset=reset)
            for name, addr, (bits, reset) in ((name, addr, FRAMER_SETTINGS[name]) for name, addr in _SENT.items())
        ),
        *(
            Register(f"received_{name}", 0x40 + k, f"{name.upper()} as received.", "ro", bits)
            for k, (name, bits) in enumerate(RECEIVED.items())
        ),
        *(
            Register(f"count_{name}", 0x80 + k, f"At the last `latch`: {text}.", "ro")
            for k, (name, text) in enumerate(COUNTERS.items())
        ),
    ),
)  # fmt: skip
"""The registers of a terminal."""


def sonet_registers(*, sts: int) -> RegisterMap:
    """The registers of a line of ``sts`` STS-1."""
    ways = []
    word_bits = 24 * sts
    for k in range(2):
        base, to = 0x0100 + 0x80 * k, f"{k}{1 - k}"
        ways += [
            Register(f"random_{to}", base, "random errors on", width=1),
            Register(f"mantissa_{to}", base + 0x01, "scale of the gaps between errors", width=24),
            Register(f"shift_{to}", base + 0x02, "scale of the gaps, binary places", width=6),
            Register(f"gap_{to}", base + 0x04, "good bits before the next error", "wo", GAP_BITS, unit="bits"),
            Register(f"state_{to}", base + 0x06, "state of the generator, not 0", "wo", 64),
            Register(f"burst_{to}", base + 0x08, "inverts so many", width=16, unit="words"),
            Register(
                f"flip_{to}", base + 0x09, "inverts a bit of the frame when it passes",
                fields=(Field("bit", 0, 16, "0 the first of the word on the line"), Field("word", 16, 16)),
            ),
            Register(f"loss_{to}", base + 0x0A, "zeros for so many: loss of signal", unit="words"),
            Register(
                f"slip_{to}", base + 0x0B, "late by so many, less than a word", width=(word_bits - 1).bit_length(),
                unit="bits",
            ),
            Register(f"error_bits_{to}", base + 0x10, "inverted one by one", "ro", unit="bits"),
            Register(f"hit_words_{to}", base + 0x11, "changed by any of this", "ro", unit="words"),
        ]  # fmt: skip
    return RegisterMap(
        "sonet",
        "BPSN",
        2,
        {"sts": sts},
        (
            Register("queued", 0x0080, "that wait at an end", "ro", count=2, unit="cells"),
            Register("sent", 0x0082, "sent by an end", "ro", count=2, unit="cells"),
            Register("landed", 0x0084, "sent by an end half a frame ago and before", "ro", count=2, unit="cells"),
            Register(
                "received", 0x0086, "received by an end, corrected ones included", "ro", count=2, unit="cells"
            ),
            Register("errored", 0x0088, "received by an end with a wrong header", "ro", count=2, unit="cells"),
            Register("full", 0x008A, f"that found {WAITING} waiting", "ro", unit="cells"),
            Register("hec", 0x008B, "that came in with hec_error, dropped", "ro", unit="cells"),
            Register("under_way", 0x008C, "received that leave in the next tick", "ro", width=1, unit="cells"),
            *ways,
        ),
        {"end0": (0x1000, TERMINAL), "end1": (0x2000, TERMINAL)},
    )  # fmt: skip
