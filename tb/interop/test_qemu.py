"""A virtual machine sends through an experiment's network: QEMU's card is a UDP end, a namespace the other one.

QEMU emulates the processor (TCG), so KVM is not needed. ``python test_qemu.py KERNEL FOLDER`` in namespaces of its own
(network, mounts) prints as JSON what the guest says, and leaves the session's run folder there.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
MISSING = [name for name in ("qemu-system-x86_64", "busybox", "cpio", "ip", "unshare") if not shutil.which(name)]
NAMED = os.environ.get("BENTPIPE_QEMU_KERNEL")
KERNEL = Path(NAMED) if NAMED else max(Path("/boot").glob("vmlinuz-*"), default=None)
NO_KERNEL = """no kernel image in /boot: apt-get download linux-image-VERSION-cloud-amd64 (the one on which \
linux-image-cloud-amd64 depends), dpkg -x FILE FOLDER, BENTPIPE_QEMU_KERNEL=FOLDER/boot/vmlinuz-VERSION-cloud-amd64"""
DRIVERS = "virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net"
"""In this order; those that the kernel contains have no module."""
OURS, THEIRS = 10000, 10001
LEAST_MS = 534  # both ways over the satellite
PINGS, SIZE = 5, 1472  # that many octets fill a frame of 1514
INIT = f"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc; mount -t sysfs none /sys
for name in {DRIVERS}; do [ ! -f /$name.ko ] || insmod /$name.ko; done
ip address add 10.111.0.1/24 dev eth0; ip link set eth0 up
ping -c 1 10.111.0.2
ping -c {PINGS} -s {SIZE} 10.111.0.2
ip link set eth0 down; sleep 1
echo "sent $(cat /sys/class/net/eth0/statistics/tx_packets)"
poweroff -f
"""
"""The first ping waits for the address (ARP). The pause at the end lets the last frame arrive."""


def initramfs(kernel: Path, folder: Path) -> Path:
    """Return an archive of busybox, the drivers of the card, and what the guest does."""
    tree, modules = folder / "guest", kernel.parents[1] / "lib" / "modules" / kernel.name.removeprefix("vmlinuz-")
    for name in ("bin", "proc", "sys"):
        (tree / name).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), tree / "bin" / "busybox")
    for name in DRIVERS.split():
        for found in modules.rglob(f"{name}.ko*"):
            data = found.read_bytes()
            (tree / f"{name}.ko").write_bytes(lzma.decompress(data) if found.suffix == ".xz" else data)
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    names = "\n".join(str(each.relative_to(tree)) for each in sorted(tree.rglob("*")))
    made = subprocess.run(
        ["cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, input=names.encode(), stdout=subprocess.PIPE, check=True
    )
    (folder / "initramfs").write_bytes(made.stdout)
    return folder / "initramfs"


def guest(kernel: Path, initial: Path) -> str:
    """Return what a guest prints until it switches itself off; its clock is QEMU's HPET, which is not calibrated."""
    card = f"dgram,id=n,local.type=inet,local.host=127.0.0.1,local.port={THEIRS},"
    card += f"remote.type=inet,remote.host=127.0.0.1,remote.port={OURS}"
    command = ["qemu-system-x86_64", "-accel", "tcg", "-m", "256", "-nographic", "-no-reboot", "-nic", "none"]
    command += ["-kernel", str(kernel), "-initrd", str(initial), "-append", "console=ttyS0 panic=-1 clocksource=hpet"]
    command += ["-netdev", card, "-device", "virtio-net-pci,netdev=n,romfile="]
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")


def main(kernel: Path, folder: Path) -> None:
    """Attach, run the guest, and print its round trips and its number of frames."""
    for command in ("mount -t tmpfs none /run", "ip link set lo up"):
        subprocess.run(command.split(), check=True)
    session = [sys.executable, "-m", "bentpipe", "attach", "acts-1flow", "--out", str(folder / "run")]
    session += ["--a", f"udp:{OURS}-{THEIRS}", "--b", "ns:gsfc"]
    initial = initramfs(kernel, folder)
    with subprocess.Popen(session, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not any("Attached" in line for line in process.stdout):
                raise SystemExit("the session did not begin")
            said = guest(kernel, initial)
        finally:
            process.terminate()
    trips, sent = (
        re.findall(rf"^{SIZE + 8} bytes from .* time=([\d.]+) ms", said, re.M),
        re.search(r"^sent (\d+)", said, re.M),
    )
    if not sent:
        raise SystemExit(f"the guest did not end as it should:\n{said[-3000:]}")
    print(json.dumps({"ms": [float(each) for each in trips], "sent": int(sent[1])}))


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (busybox: the static one)")
@pytest.mark.skipif(KERNEL is None, reason=NO_KERNEL)
@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_a_guest_pings_over_the_satellite(tmp_path: Path) -> None:
    """Round trips take the path's 534 ms, and a bit more in the emulator; the ledger has each frame of the card."""
    command = ["unshare", "-n", "-m", sys.executable, __file__, str(KERNEL), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found, session = json.loads(done.stdout), json.loads((tmp_path / "run" / "result.json").read_text())
    print(found, session["attached"]["verdict"])
    assert len(found["ms"]) == PINGS and LEAST_MS <= min(found["ms"]) < LEAST_MS + 20
    there, back = session["ledger"]
    assert there["source"] == "alpha1" and there["sent"] == found["sent"] > PINGS
    assert there["delivered"] == there["sent"] and there["lost"] == []
    assert back["delivered"] > PINGS and there["cells"]["sent"] >= 32 * PINGS  # 1514 + 10 + 8 octets
    assert session["attached"]["ends"][0]["counts"]["malformed"] == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
