"""FTP (RFC 959): a dialogue on the control connection, the file on the data connection, disks at both ends."""

from __future__ import annotations

from typing import Final, final

from bentpipe.apps.app import Application, Fact, Program, Socket, SocketPair
from bentpipe.apps.settings import OCTETS, ApplicationSpec, AppSetting, Column, FlowRequest, Problem, Report, Test
from bentpipe_hdl.units import RATE

__all__ = ["APPLICATION", "COMMANDS", "GREETING", "MODES", "Ftp"]

MODES: Final = ("get", "put")
"""``get``: the client is at the sink and fetches the file; ``put``: it is at the source and stores it."""

GREETING: Final = "220 server FTP server (Version 5.60) ready.\r\n"
COMMANDS: Final = (
    ("USER anonymous\r\n", "331 Guest login ok, send ident as password.\r\n"),
    ("PASS user@client\r\n", "230 Guest login ok, access restrictions apply.\r\n"),
    ("TYPE I\r\n", "200 Type set to I.\r\n"),
    ("PORT 10,0,0,2,4,1\r\n", "200 PORT command successful.\r\n"),
    ("RETR file\r\n", "150 Opening BINARY mode data connection for file.\r\n"),
    ("QUIT\r\n", "221 Goodbye.\r\n"),
)
"""Commands of the BSD client and replies of the BSD server to them; only their lengths go over the wire."""
_TRANSFER: Final = 4
_COMPLETE: Final = "226 Transfer complete.\r\n"

_CONTROL_PORT: Final = 21
_DATA_PORT: Final = 20
_PS_PER_S: Final = 1_000_000_000_000


@final
class Ftp(Application):
    """The transfer of one file from the source to the sink, and what its four programs share.

    The client is at the sink and fetches, or (``put``) at the source and stores. The server opens the data connection,
    from its port 20 to the port that the client has named.

    Parameters
    ----------
    size_octets : int
        The file.
    block_octets : int
        How much is read from the file and written to the socket at once, and at the other end.
    read_bps, write_bps : int
        How fast the disks are at the source and at the sink; 0: they take no time.
    put : bool
        The client is at the source.
    """

    def __init__(self, size_octets: int, block_octets: int, read_bps: int, write_bps: int, put: bool) -> None:
        super().__init__("ftp")
        if size_octets < 1:
            raise ValueError(f"size_octets must be at least 1, not {size_octets!r}")
        if block_octets < 1:
            raise ValueError(f"block_octets must be at least 1, not {block_octets!r}")
        if read_bps < 0 or write_bps < 0:
            raise ValueError(f"disk rates must not be negative, not {read_bps!r} and {write_bps!r}")
        self.size_octets = size_octets
        self.block_octets = block_octets
        self.read_bps = read_bps
        self.write_bps = write_bps
        self.put = put
        self.data: SocketPair | None = None
        self.client = FtpClient(self)
        self.server = FtpServer(self)
        self.opened_ps: int = -1
        self.asked_ps: int = -1
        self.begun_ps: int = -1
        self.ended_ps: int = -1
        self.left_ps: int = -1

    def listen(self) -> None:
        endpoints = self.endpoints
        client, server = (endpoints.source, endpoints.sink) if self.put else (endpoints.sink, endpoints.source)
        port = client.ports(2)
        ports = (port, _DATA_PORT) if self.put else (_DATA_PORT, port)
        self.data = endpoints.pair(endpoints.source, FtpSend(self), endpoints.sink, FtpReceive(self), server, ports)
        ports = (port + 1, _CONTROL_PORT)
        self.first = endpoints.pair(client, self.client, server, self.server, None, ports, "control")

    def begun(self, now_ps: int) -> None:
        """Record the begin of the transfer: the later one of data connection and announcing reply counts."""
        if now_ps > self.begun_ps:
            self.begun_ps = now_ps

    def facts(self, now_ps: int) -> dict[str, Fact]:
        """Return the transfer as the client prints it (``... bytes received in ... seconds (... Kbytes/s)``), and how
        long the dialogue took."""
        seconds = (self.ended_ps - self.begun_ps) / _PS_PER_S if self.ended_ps >= 0 else 0.0
        return {
            "ftp_mode": MODES[1] if self.put else MODES[0],
            "ftp_seconds": seconds,
            "ftp_kbytes_per_s": self.size_octets / 1024 / seconds if seconds > 0 else 0.0,
            "ftp_login_ps": self.asked_ps - self.opened_ps if self.asked_ps >= 0 else 0,
            "ftp_session_ps": self.left_ps - self.opened_ps if self.left_ps >= 0 else 0,
        }


@final
class FtpClient(Program):
    """The client's end of the control connection."""

    def __init__(self, session: Ftp) -> None:
        super().__init__(True)
        self.session = session
        self.step: int = -1
        self.got: int = 0
        self.wanted: int = len(GREETING)
        self.complete: bool = False
        self.socket: Socket | None = None

    def connected(self, socket: Socket, now_ps: int) -> int:
        self.session.opened_ps = now_ps
        self.socket = socket
        return 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        self.got += socket.read(socket.unread(), now_ps)
        while self.got >= self.wanted and self.step < len(COMMANDS):
            self.got -= self.wanted
            self._reply(socket, now_ps)
            if self.step == len(COMMANDS):
                socket.close(now_ps)
        return 0

    def _reply(self, socket: Socket, now_ps: int) -> None:
        if self.step == _TRANSFER and self.wanted != len(_COMPLETE):
            self.session.begun(now_ps)
            self.wanted = len(_COMPLETE)
            return
        if self.step == _TRANSFER:
            self.complete = True
            self.proceed(now_ps)
            return
        self._command(socket, now_ps)

    def proceed(self, now_ps: int) -> None:
        """Let the client leave once the transfer is complete for both, the server and the client."""
        if self.complete and self.session.ended_ps >= 0 and self.step == _TRANSFER and self.socket is not None:
            self._command(self.socket, now_ps)
            self.socket.flush(now_ps)

    def _command(self, socket: Socket, now_ps: int) -> None:
        self.step += 1
        if self.step == len(COMMANDS):
            self.session.left_ps = now_ps
            return
        if self.step == _TRANSFER:
            self.session.asked_ps = now_ps
        command, reply = COMMANDS[self.step]
        self.wanted = len(reply)
        socket.write(len(command), now_ps)


@final
class FtpServer(Program):
    """The server's end of the control connection."""

    def __init__(self, session: Ftp) -> None:
        super().__init__(True)
        self.session = session
        self.step: int = 0
        self.got: int = 0
        self.socket: Socket | None = None

    def connected(self, socket: Socket, now_ps: int) -> int:
        self.socket = socket
        socket.write(len(GREETING), now_ps)
        return 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        self.got += socket.read(socket.unread(), now_ps)
        while self.step < len(COMMANDS) and self.got >= len(COMMANDS[self.step][0]):
            self.got -= len(COMMANDS[self.step][0])
            self.step += 1
            if self.step == _TRANSFER + 1:
                data = self.session.data
                if data is not None:
                    data.open(now_ps)
            else:
                socket.write(len(COMMANDS[self.step - 1][1]), now_ps)
        if socket.ended():
            socket.close(now_ps)
        return 0

    def announce(self, now_ps: int) -> None:
        """Announce the data connection, which is established."""
        self._reply(len(COMMANDS[_TRANSFER][1]), now_ps)

    def finished(self, now_ps: int) -> None:
        """Reply that the file is sent or stored."""
        self._reply(len(_COMPLETE), now_ps)

    def _reply(self, octets: int, now_ps: int) -> None:
        if self.socket is not None:
            self.socket.write(octets, now_ps)
            self.socket.flush(now_ps)


@final
class FtpSend(Program):
    """The sender of a file: it reads block by block and writes to the data connection; the disk reads one block
    ahead."""

    def __init__(self, session: Ftp) -> None:
        super().__init__()
        self.session = session
        self.left: int = session.size_octets
        self.ready_ps: int = 0
        self.blocked: bool = False
        self.disk_ps: int = 0

    def _disk(self) -> int:
        """Return the time that the disk takes for the next block (ps)."""
        octets = min(self.session.block_octets, self.left)
        rate = self.session.read_bps
        return octets * 8 * _PS_PER_S // rate if rate else 0

    def connected(self, socket: Socket, now_ps: int) -> int:
        if self.session.put:
            self.session.begun(now_ps)
        else:
            self.session.server.announce(now_ps)
        self.ready_ps = now_ps + self._disk()
        return self._next(socket, now_ps)

    def wake(self, socket: Socket, now_ps: int) -> int:
        return 0 if self.blocked else self._next(socket, now_ps)

    def written(self, socket: Socket, now_ps: int) -> int:
        self.blocked = False
        return self._next(socket, now_ps)

    def _next(self, socket: Socket, now_ps: int) -> int:
        while self.left:
            if now_ps < self.ready_ps:
                return self.ready_ps
            octets = min(self.session.block_octets, self.left)
            self.left -= octets
            self.ready_ps = now_ps + self._disk()
            if not socket.write(octets, now_ps):
                self.blocked = True
                return 0
        socket.close(now_ps)
        session = self.session
        if session.put:
            session.ended_ps = now_ps
            session.client.proceed(now_ps)
        else:
            session.server.finished(now_ps)
        return 0


@final
class FtpReceive(Program):
    """The receiver of a file: it reads from the data connection and writes to the disk in turn, block by block."""

    def __init__(self, session: Ftp) -> None:
        super().__init__(True)
        self.session = session
        self.busy: bool = False
        self.done: bool = False

    def connected(self, socket: Socket, now_ps: int) -> int:
        if self.session.put:
            self.session.server.announce(now_ps)
        else:
            self.session.begun(now_ps)
        return 0

    def arrived(self, socket: Socket, now_ps: int) -> int:
        return 0 if self.busy else self._next(socket, now_ps)

    def wake(self, socket: Socket, now_ps: int) -> int:
        self.busy = False
        return self._next(socket, now_ps)

    def _next(self, socket: Socket, now_ps: int) -> int:
        session = self.session
        while True:
            octets = socket.read(min(session.block_octets, socket.unread()), now_ps)
            if octets == 0:
                break
            if session.write_bps:
                self.busy = True
                return now_ps + octets * 8 * _PS_PER_S // session.write_bps
        if socket.ended() and not self.done:
            self.done = True
            socket.close(now_ps)
            if session.put:
                session.server.finished(now_ps)
            else:
                session.ended_ps = now_ps
                session.client.proceed(now_ps)
        return 0


def _check(given: FlowRequest) -> Problem:
    return ("size", "ftp needs the size of the file") if given.size is None else None


def _make(given: FlowRequest) -> Ftp:
    v = given.values
    return Ftp(given.size or 0, v["block"], v["disk_read"] or 0, v["disk_write"] or 0, v["mode"] == MODES[1])


APPLICATION: Final = ApplicationSpec(
    "ftp",
    "a file over a data connection, after a dialogue on a control connection; `size` is the file's",
    (
        AppSetting("mode", MODES, MODES[0], "direction: the sink fetches the file, or the source stores it"),
        AppSetting("block", OCTETS, 8192, "octets read or written at once", word="blocksize", also=("messagesize",)),
        AppSetting(
            "disk_read",
            RATE,
            None,
            "read rate of the source's disk; default: the disk takes no time",
            word="diskread",
            unit="b/s",
        ),
        AppSetting("disk_write", RATE, None, "write rate of the sink's disk", word="diskwrite", unit="b/s"),
    ),
    _make,
    _check,
    protocols=("tcp",),
    takes=("size",),
    tests=(Test("ftp", "a file, by FTP; `size` is the file's"),),
    report=Report(
        "FTP, as the client reports it",
        (
            Column("ftp_mode", "", "`get` or `put`"),
            Column("ftp_seconds", "", "duration of the transfer", "seconds"),
            Column("ftp_kbytes_per_s", "", "rate of the transfer, in 1024 octets a second", "Kbytes/s"),
            Column("ftp_login_ps", "ps", "duration of the dialogue before the transfer", "dialogue before"),
            Column("ftp_session_ps", "ps", "the whole dialogue"),
        ),
        label="ftp_mode",
    ),
)
