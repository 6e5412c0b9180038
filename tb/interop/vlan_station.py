"""VLAN devices of a station on a trunk, without the kernel's own, which not every kernel has: ``INTERFACE VID …``.

Each VID has a TAP device ``vVID``. Frames of the device get the tag of the VID, and leave on the interface. Frames that
arrive on the interface with this tag lose it, and go to the device. The program prints ``ready`` when the devices
exist.
"""

import os
import select
import socket
import struct
import sys

from bentpipe.attach.kernel import open_device, packet_socket

_AUXDATA = struct.Struct("IIIHHHH")


def main(interface: str, vids: list[int]) -> None:
    trunk = packet_socket(interface)
    taps = {vid: open_device(f"v{vid}", tap=True) for vid in vids}
    print("ready", flush=True)
    while True:
        for ready in select.select([trunk, *taps.values()], [], [])[0]:
            if isinstance(ready, socket.socket):
                _to_taps(trunk, taps)
            else:
                vid = next(vid for vid, tap in taps.items() if tap == ready)
                frame = os.read(ready, 2048)
                trunk.send(frame[:12] + struct.pack("!HH", 0x8100, vid) + frame[12:])


def _to_taps(trunk: socket.socket, taps: dict[int, int]) -> None:
    frame, about, *_ = trunk.recvmsg(2048, 256)
    data = next(data for level, kind, data in about if (level, kind) == (263, 8))  # PACKET_AUXDATA
    status, _, _, _, _, control, _ = _AUXDATA.unpack(data[: _AUXDATA.size])
    vid = control & 0xFFF if status & 0x10 else 0  # TP_STATUS_VLAN_VALID
    if vid in taps:
        os.write(taps[vid], frame)


if __name__ == "__main__":
    main(sys.argv[1], [*map(int, sys.argv[2:])])
