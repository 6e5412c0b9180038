"""Drives a compiled node model clock by clock, port by port: for comparing it with Amaranth's own simulator."""

import ctypes


class _Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("width", ctypes.c_uint32)]


class _Model(ctypes.Structure):
    _fields_ = [
        ("create", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)),
        ("destroy", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("clock", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("turn", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("cell", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("reset", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)),
        ("ports", ctypes.CFUNCTYPE(ctypes.POINTER(_Port), ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32))),
        ("state", ctypes.c_void_p),
    ]


class CompiledModel:
    """A model made by ``bentpipe_sim.build.build_model``; ports by name, as integers of any width."""

    def __init__(self, path):
        self._library = ctypes.CDLL(str(path))
        self._model = _Model.in_dll(self._library, "bentpipe_model")
        self._instance = self._model.create(0)
        count = ctypes.c_uint32()
        ports = self._model.ports(self._instance, ctypes.byref(count))
        self.ports = {ports[k].name.decode(): (ports[k].data, ports[k].width) for k in range(count.value)}

    def _buffer(self, name):
        data, width = self.ports[name]
        size = next((n for n in (1, 2, 4, 8) if width <= 8 * n), (width + 31) // 32 * 4)
        return (ctypes.c_uint8 * size).from_address(data), width

    def get(self, name):
        return int.from_bytes(bytes(self._buffer(name)[0]), "little")

    def set(self, name, value):
        buffer, width = self._buffer(name)
        assert 0 <= value < 1 << width
        buffer[:] = value.to_bytes(len(buffer), "little")

    def clock(self):
        self._model.clock(self._instance)

    def reset(self, on):
        self._model.reset(self._instance, int(on))
