"""A SONET line as software sees it: its registers and those of the terminals at its ends, its settings, its driver."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from bentpipe_hdl import registers as reg
from bentpipe_hdl.bit_errors import GAP_BITS, ErrorStart, scale_of
from bentpipe_hdl.driver import Balance, Driver, wrapped
from bentpipe_hdl.registers import Bus, Register, RegisterMap
from bentpipe_hdl.settings import BER, IN_RUN, NUMBER, Settings
from bentpipe_hdl.sonet.tables import ALARMS, COUNTERS, FORCE, FRAMER_SETTINGS, RECEIVED

__all__ = [
    "AFTER_RESET",
    "TERMINAL",
    "WAITING",
    "WAITING_MOVES",
    "SonetDriver",
    "SonetSettings",
    "sonet_registers",
]

WAITING = 16
"""Cells that wait at an end of a line, at most."""

FOREVER = (1 << 32) - 1
"""Value of the registers ``loss`` for a loss without end."""

WAITING_MOVES = 16
"""Pointer movements that wait for their time."""

AFTER_RESET = {"sef": 1, "lop_p": 1}
"""Defects that stand after reset: frame and pointer are still to be found."""

STOPPING = ("los", "sef", "lof", "ais_l", "ais_p", "lop_p", "uneq_p", "ocd")
"""Defects while which cells do not arrive."""

DRIFT_PER_PPM = 13136.56
"""Value of the register ``drift`` for 1 ppm."""


class SonetSettings(Settings):
    """A line with its SONET framing, both ways; without propagation delay."""

    sts: Literal[3, 12] = Field(default=3, description="STS-3c or STS-12c")
    ber: tuple[Annotated[float, BER], Annotated[float, BER]] = Field(
        default=(0.0, 0.0), description="bit error ratio from end 0 to end 1, and back", json_schema_extra=IN_RUN
    )
    outage: tuple[bool, bool] = Field(
        default=(False, False), description="zeros on the line from end 0 to end 1, and back", json_schema_extra=IN_RUN
    )
    ppm: Annotated[float, NUMBER.within(-320.0, 320.0, name="ppm")] = Field(
        default=0.0, description="offset of the payload's clock from the line's: slower at end 0, faster at end 1"
    )


_DEFECTS = tuple(reg.Field(alarm.name, k, text=alarm.title) for k, alarm in enumerate(ALARMS))
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
            reset=None,
        ),
        Register(
            "changed", 0x01, "Defects that were raised or cleared.", "ro", len(ALARMS), fields=_DEFECTS, reset=None,
            on_write="ones clear their bits",
        ),
        Register("interrupt_mask", 0x02, "Bits of `changed` that raise `irq`.", width=len(ALARMS), fields=_DEFECTS),
        Register(
            "state", 0x03, "State of the receiver.", "ro", reset=None,
            fields=(
                reg.Field("cells", 0, 2, "0 HUNT, 1 PRESYNC, 2 SYNC"),
                reg.Field("rdi_p_code", 4, 3, "G1 bits 5 to 7 as 10 frames agreed"),
                reg.Field("pointer", 8, 10, "received pointer"),
                reg.Field("sent_pointer", 20, 10, "pointer sent"),
                reg.Field("in_frame", 31),
            ),
        ),
        Register("latch", 0x04, "Command to copy the counters and clear them.", "wo", on_write="any value"),
        Register(
            "mode", 0x08, "Automatic actions and expected traces.", width=12, reset=0b11,
            fields=(
                reg.Field("auto_rdi", 0, text="send RDI-L and RDI-P (1 after reset)"),
                reg.Field("auto_rei", 1, text="send REI-L and REI-P (1 after reset)"),
                reg.Field("tim_s", 2, text="compare J0"),
                reg.Field("tim_p", 3, text="compare J1"),
                reg.Field("j0_sent_form", 4, 2, "form of the J0 sent: 0 one byte, 1 sixteen, 2 sixty-four"),
                reg.Field("j1_sent_form", 6, 2, "form of the J1 sent, likewise"),
                reg.Field("j0_form", 8, 2, "form of the expected J0, likewise"),
                reg.Field("j1_form", 10, 2, "form of the expected J1, likewise"),
            ),
        ),
        Register(
            "force", 0x09, "Errors inserted on purpose while their bits are set.", width=len(FORCE),
            fields=tuple(reg.Field(name, k, text=text) for k, (name, text) in enumerate(FORCE.items())),
        ),
        Register("hec_mask", 0x0A, "Mask that is added to the HEC of each cell sent.", width=8),
        Register("c2_expected", 0x0B, "Expected signal label; 13 hex after reset.", width=8, reset=0x13),
        Register(
            "drift", 0x0C,
            "Delay of the path's clock against the line's: N bytes a frame, in units of 2**-24, signed 24 bits; "
            "1 ppm is 13136.56.",
            width=24,
        ),
        Register(
            "move", 0x0D,
            "Request of a pointer movement: jump, else increment, else decrement. Up to "
            f"{WAITING_MOVES} requests wait for their time; further ones are refused and counted.",
            "wo",
            fields=(
                reg.Field("increment", 0), reg.Field("decrement", 1),
                reg.Field("jump", 2, text="to `target`, with NDF"), reg.Field("target", 16, 10),
            ),
            on_write="the movement is requested",
        ),
        Register(
            "moves", 0x0E, "Waiting and refused requests of `move`.", "ro",
            fields=(reg.Field("waiting", 0, 5), reg.Field("refused", 16, 16, "wraps")),
        ),
        Register(
            "trace", 0x10, "Byte of a trace message.", "wo",
            fields=(
                reg.Field("byte", 0, 8), reg.Field("index", 8, 6),
                reg.Field("message", 16, 2, "0 J0 sent, 1 J1 sent, 2 J0 expected, 3 J1 expected"),
            ),
            on_write="the byte is written",
        ),
        *(
            Register(f"sent_{name}", addr, f"{name.upper()} to be sent.", width=bits, reset=reset)
            for name, addr, (bits, reset) in ((name, addr, FRAMER_SETTINGS[name]) for name, addr in _SENT.items())
        ),
        *(
            Register(f"received_{name}", 0x40 + k, f"{name.upper()} as received.", "ro", bits, reset=None)
            for k, (name, bits) in enumerate(RECEIVED.items())
        ),
        *(
            Register(f"count_{name}", 0x80 + k, f"At the last `latch`: {text}.", "ro")
            for k, (name, text) in enumerate(COUNTERS.items())
        ),
    ),
)  # fmt: skip
"""The registers of a terminal."""


def sonet_registers(*, sts: int = 3) -> RegisterMap:
    """Return the registers of a line of ``sts`` STS-1; ValueError unless they are 3 or 12."""
    if sts not in (3, 12):
        raise ValueError(f"sts must be 3 or 12, not {sts!r}")
    ways = []
    word_bits = 24 * sts
    for k in range(2):
        base, to = 0x0100 + 0x80 * k, f"{k}{1 - k}"
        ways += [
            Register(f"random_{to}", base, "random errors enabled", width=1),
            Register(f"mantissa_{to}", base + 0x01, "scale of the gaps between errors", width=24),
            Register(f"shift_{to}", base + 0x02, "scale of the gaps between errors, binary places", width=6),
            Register(
                f"gap_{to}", base + 0x04, "bits without errors before the next error",
                "wo", GAP_BITS, unit="bits",
            ),
            Register(f"state_{to}", base + 0x06, "state of the generator, not 0", "wo", 64),
            Register(f"burst_{to}", base + 0x08, "words to be inverted", width=16, unit="words"),
            Register(
                f"flip_{to}", base + 0x09, "bit of the frame that is inverted when it passes",
                fields=(
                    reg.Field("bit", 0, 16, "bit in the word; 0 is the first one on the line"),
                    reg.Field("word", 16, 16),
                ),
            ),
            Register(
                f"loss_{to}", base + 0x0A, "words of zeros: loss of signal; all ones: until it is written again",
                unit="words",
            ),
            Register(
                f"slip_{to}", base + 0x0B, "bits by which the line is late, less than a word",
                width=(word_bits - 1).bit_length(),
                unit="bits",
            ),
            Register(f"error_bits_{to}", base + 0x10, "bits inverted one by one", "ro", unit="bits"),
            Register(f"hit_words_{to}", base + 0x11, "words changed by any of these", "ro", unit="words"),
        ]  # fmt: skip
    return RegisterMap(
        "sonet",
        "BPSN",
        2,
        {"sts": sts},
        (
            Register("queued", 0x0080, "cells that wait at an end", "ro", count=2, unit="cells"),
            Register("sent", 0x0082, "cells sent by an end", "ro", count=2, unit="cells"),
            Register("landed", 0x0084, "cells sent by an end half a frame ago and before", "ro", count=2, unit="cells"),
            Register(
                "received", 0x0086, "cells received by an end, with corrected ones", "ro", count=2, unit="cells"
            ),
            Register("errored", 0x0088, "cells received by an end with a wrong header", "ro", count=2, unit="cells"),
            Register("full", 0x008A, f"cells that found {WAITING} waiting", "ro", unit="cells"),
            Register("hec", 0x008B, "cells dropped, as they arrived with hec_error", "ro", unit="cells"),
            Register("under_way", 0x008C, "cells received that leave in the next tick", "ro", width=1, unit="cells"),
            *ways,
        ),
        {"end0": (0x1000, TERMINAL), "end1": (0x2000, TERMINAL)},
    )  # fmt: skip


class SonetDriver(Driver):
    """The software side of a line of ``sts`` STS-1."""

    kind = "sonet"

    def __init__(self, bus: Bus, *, sts: int):
        super().__init__(bus, sonet_registers(sts=sts))
        self._ends = (self.csr.end0, self.csr.end1)

    def configure(self, settings: SonetSettings, starts: Sequence[ErrorStart]) -> None:
        """Write all settings of a line that was reset: of each way, where its errors start."""
        for end in self._ends:
            end.changed = (1 << len(ALARMS)) - 1
        for way, start in enumerate(starts):
            self._put("state", way, start.state)
        self.apply(settings)
        for way, (ratio, start) in enumerate(zip(settings.ber, starts, strict=True)):
            if ratio:
                self._put("gap", way, start.gap(ratio))

    def apply(self, settings: SonetSettings) -> None:
        """Write the settings but where the errors start. A line whose bit error ratio changes passes the next word
        unhurt, and behind it the gap to the next error is one of the new ratio."""
        drift = round(settings.ppm * DRIFT_PER_PPM)
        for end, offset in zip((self.csr.end0, self.csr.end1), (drift, -drift), strict=True):
            end.drift = offset & 0xFFFFFF
        for way, ratio in enumerate(settings.ber):
            if ratio:
                for name, value in zip(("mantissa", "shift"), scale_of(ratio), strict=True):
                    self._put(name, way, value)
            self._put("random", way, int(ratio > 0))
            self._put("loss", way, FOREVER if settings.outage[way] else 0)

    def _put(self, name: str, way: int, value: int) -> None:
        setattr(self.csr, f"{name}_{way}{1 - way}", value)

    def _get(self, name: str) -> list[int]:
        return [getattr(self.csr, f"{name}_{way}{1 - way}") for way in range(2)]

    def latch(self) -> None:
        """Make both terminals copy their counters and clear them, at the line's next word (463 ns)."""
        for end in self._ends:
            end.latch = 0

    def terminal(self, end: int) -> dict[str, int]:
        """Return the registers of the terminal at an end (0 or 1) by name; counters have the values of the last
        :meth:`latch`."""
        return {r.name: self._ends[end].get(r) for r in TERMINAL.registers if r.access != "wo"}

    def lose_signal(self, way: int, words: int) -> None:
        """Send zeros on the line from end ``way`` for so many words (2.16 million a second)."""
        self._put("loss", way, words)

    def burst(self, way: int, words: int) -> None:
        """Invert all bits on the line from end ``way`` for so many words, at most 65535."""
        self._put("burst", way, words)

    def slip(self, way: int, bits: int) -> None:
        """Delay the line from end ``way`` by so many bits, less than a word of 3N bytes, from now on."""
        self._put("slip", way, bits)

    def invert(self, way: int, bit: int) -> None:
        """Invert a bit of the frame, when it passes next, on the line from end ``way``; 0 is the first bit of A1.

        Raises
        ------
        ValueError
            A frame has no such bit.
        """
        sts = self.csr.map.shape["sts"]
        bits = 72 * sts // 3
        if not 0 <= bit < 270 * bits:
            raise ValueError(f"a frame of STS-{sts}c has bits 0 to {270 * bits - 1}, not {bit}")
        word, place = divmod(bit, bits)
        self._put("flip", way, word << 16 | place)

    def counters(self) -> dict[str, Any]:
        """Return the line's counters by name.

        ``drop_line`` are cells lost between the ends, without those of the last half frame (62 us).
        """
        csr = self.csr
        found: dict[str, Any] = {
            name: getattr(csr, name)[:] for name in ("queued", "sent", "landed", "received", "errored")
        }
        found |= {"drop_full": csr.full, "drop_hec": csr.hec, "under_way": csr.under_way}
        found |= {"error_bits": self._get("error_bits"), "hit_words": self._get("hit_words")}
        came = [(found["received"][1 - way] + found["errored"][1 - way]) for way in range(2)]
        found["drop_line"] = [max(0, wrapped(found["landed"][way] - came[way])) for way in range(2)]
        return found

    def account(self, cells_in: int, cells_out: int) -> Iterator[Balance]:
        now = self.counters()
        waiting, sent, errored = sum(now["queued"]), sum(now["sent"]), sum(now["errored"])
        gone = now["drop_full"] + now["drop_hec"]
        yield Balance("cells in = sent + waiting + dropped", cells_in, sent + waiting + gone)
        yield Balance("cells received = cells out", sum(now["received"]) + errored, cells_out + now["under_way"])

    def wonders(self) -> Iterator[str]:
        """Yield a text for cells that were lost or made without an error on the line and without a defect that stops
        cells.

        In a correct line there are none.
        """
        now, stopping = self.counters(), sum(1 << k for k, alarm in enumerate(ALARMS) if alarm.name in STOPPING)
        for way in range(2):
            far = 1 - way
            if int(self._ends[far].changed) & stopping:
                continue
            came, hits = now["received"][far] + now["errored"][far], now["hit_words"][way]
            lost, made = wrapped(now["landed"][way] - came), wrapped(came - now["sent"][way])
            for cells, what in ((lost, "lost"), (made, "made up")):
                if cells > hits:
                    yield f"{cells} cells {what} from end {way} to {far} by {hits} words with errors and no defect"
