# SPDX-License-Identifier: Apache-2.0
"""The Ethos-U as a device, and a driver for it in Python: the registers that a driver writes, in its order."""
import ctypes
import pathlib
import re
import struct

import numpy as np
import simulator

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "include/tosaic/ethosu_registers.h").read_text()
# Every name of the header with its value, without TOSAIC_ETHOSU_.
R = {name: eval(value.rstrip("u"), {}) for name, value in re.findall(
    r"TOSAIC_ETHOSU_(\w+)(?: =|) (0x[0-9a-f]+u?|\d+ << \d+|\d+)", HEADER)}
ID, STATUS, CMD, RESET, QBASE, QREAD, QCONFIG, QSIZE, PROT, CONFIG, REGIONCFG, BASEP = (R[n] for n in (
    "ID", "STATUS", "CMD", "RESET", "QBASE", "QREAD", "QCONFIG", "QSIZE", "PROT", "CONFIG", "REGIONCFG", "BASEP"))
REGISTERS = 0x48102000


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("product", ctypes.c_uint32), ("macs", ctypes.c_uint32),
                ("config", ctypes.c_uint32), ("id", ctypes.c_uint32), ("deferred", ctypes.c_uint32),
                ("threads", ctypes.c_uint32), ("most_work", ctypes.c_double)]


U64, USER = ctypes.c_uint64, ctypes.c_void_p
MEMORY = ctypes.CFUNCTYPE(ctypes.c_void_p, USER, U64, ctypes.POINTER(U64), ctypes.c_int)
RELEASE = ctypes.CFUNCTYPE(None, USER, U64, ctypes.c_void_p, U64, ctypes.c_int)
COPY = ctypes.CFUNCTYPE(ctypes.c_int, USER, U64, ctypes.c_void_p, U64)
INTERRUPT = ctypes.CFUNCTYPE(None, USER, ctypes.c_int)
REPORT = ctypes.CFUNCTYPE(None, USER, ctypes.c_char_p, ctypes.c_char_p)


class Host(ctypes.Structure):
    _fields_ = [("user", USER), ("memory", MEMORY), ("release", RELEASE), ("read", COPY), ("write", COPY),
                ("interrupt", INTERRUPT), ("report", REPORT)]


class Memory:
    """Blocks of memory at bus addresses; the flash cannot be written."""

    def __init__(self, **blocks):
        self.blocks = {}
        for address, size, writable in blocks.values():
            self.blocks[address] = (np.full(size, 0xA5, np.uint8), writable)

    def find(self, address, writes):
        for base, (block, writable) in self.blocks.items():
            if base <= address < base + len(block) and (writable or not writes):
                return block[address - base:]
        return None

    def put(self, address, data):
        data = np.frombuffer(bytes(data), np.uint8)
        self.find(address, False)[:len(data)] = data

    def get(self, address, size):
        return self.find(address, False)[:size].tobytes()


class Device:
    def __init__(self, library, target, memory, by_copies=False, deferred=False, **options):
        self.library = ctypes.CDLL(str(pathlib.Path(library).resolve()))
        self.library.tosaic_ethosu_device_close.argtypes = [ctypes.c_void_p]
        self.library.tosaic_ethosu_device_read.restype = ctypes.c_uint32
        product, macs = target.removeprefix("ethos-u").split("-")
        self.product, self.macs, self.memory = int(product), int(macs), memory
        self.reports, self.line, self.raised, self.borrowed = [], 0, 0, 0
        given = Options(ctypes.sizeof(Options), self.product, self.macs, deferred=deferred, threads=2, **options)
        self.host = Host(memory=MEMORY() if by_copies else MEMORY(self._memory), release=RELEASE(self._release),
                         read=COPY(self._read), write=COPY(self._write), interrupt=INTERRUPT(self._interrupt),
                         report=REPORT(lambda _, code, text: self.reports.append((code.decode(), text.decode()))))
        self.handle, error = ctypes.c_void_p(), simulator.Error()
        status = self.library.tosaic_ethosu_device_open(ctypes.byref(given), ctypes.byref(self.host),
                                                        ctypes.byref(self.handle), ctypes.byref(error))
        if status:
            raise simulator.Refused(status, error)
        self.pmu = R["PMU_U85" if self.product == 85 else "PMU"]

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.tosaic_ethosu_device_close(self.handle)

    def _memory(self, _, address, size, writes):
        found = self.memory.find(address, writes)
        if found is None:
            return None
        size[0] = min(size[0], len(found))
        self.borrowed += 1
        return found.ctypes.data

    def _release(self, _, address, memory, size, written):
        self.borrowed -= 1

    def _read(self, _, address, to, size):
        found = self.memory.find(address, False)
        if found is None or size > len(found):
            return 1
        ctypes.memmove(to, found.ctypes.data, size)
        return 0

    def _write(self, _, address, data, size):
        found = self.memory.find(address, True)
        if found is None or size > len(found):
            return 1
        ctypes.memmove(found.ctypes.data, data, size)
        return 0

    def _interrupt(self, _, level):
        self.line = level
        self.raised += level

    def __getitem__(self, offset):
        return self.library.tosaic_ethosu_device_read(self.handle, ctypes.c_uint32(offset))

    def __setitem__(self, offset, value):
        self.library.tosaic_ethosu_device_write(self.handle, ctypes.c_uint32(offset), ctypes.c_uint32(value))

    def work(self):
        return self.library.tosaic_ethosu_device_work(self.handle)

    def words(self, status=None):
        text = ctypes.create_string_buffer(256)
        self.library.tosaic_ethosu_status_text(ctypes.c_uint32(self.product), ctypes.c_uint32(
            self[STATUS] if status is None else status), text, ctypes.c_size_t(256))
        return text.value.decode()


class DriverError(Exception):
    pass


class Driver:
    """What drivers do: reset and check, then for each job set up, run, wait and clear."""

    def __init__(self, device):
        self.device = device
        if device[CONFIG] >> 28 != {55: 0, 65: 1, 85: 2}[device.product]:
            raise DriverError("another product")
        self.soft_reset()

    def soft_reset(self, secure=True, privileged=True):
        levels = int(privileged) | int(not secure) << 1
        self.device[RESET] = levels
        for _ in range(100):
            if not self.device[STATUS] & R["STATUS_RESETTING"]:
                break
        if self.device[PROT] != levels:
            raise DriverError("the levels did not change")
        for i, limit in enumerate((0x0f1f0000, 0x0f1f0000, 0x0f1f0000, 0x0f1f0000)):
            self.device[R["AXI_LIMIT0"] + 4 * i] = i >> 1 << 2 if self.device.product == 85 else limit
        self.device[CMD] = 0xC

    def check(self, config, id_):
        """The stream's two words against the device's."""
        own, own_id = self.device[CONFIG], self.device[ID]
        if own != config or own_id >> 28 != id_ >> 28 or own_id >> 20 & 255 < id_ >> 20 & 255:
            raise DriverError(f"made for {config:#x} {id_:#x}, the device is {own:#x} {own_id:#x}")

    def start(self, address, size, bases):
        d = self.device
        d[CMD] = 0
        d[QBASE], d[QBASE + 4], d[QSIZE], d[QCONFIG] = address & 0xffffffff, address >> 32, size, 2
        regions = 0
        for i, base in enumerate(bases):
            d[BASEP + 8 * i], d[BASEP + 8 * i + 4] = base & 0xffffffff, base >> 32
            regions |= (3, 0, 1, 1, 1, 1, 1, 1)[i] << 2 * i
        d[REGIONCFG] = regions
        d[CMD] = d[CMD] & 0xC | R["CMD_RUN"]

    def finish(self):
        """After the interrupt: True when nothing went wrong."""
        d = self.device
        d[CMD] = d[CMD] & 0xC | R["CMD_CLEAR_IRQ"]
        return not d[STATUS] & R["STATUS_FAULTS"] and bool(d[STATUS] & R["STATUS_END_REACHED"])


def commands_of(container):
    """Of a COP1 container: (config, id, the commands' bytes)."""
    words = struct.unpack(f"<{len(container) // 4}I", container)
    assert words[0] == 0x31504F43
    at, config, id_ = 1, None, None
    while True:
        action = words[at] & 255
        if action == 5:
            at += 1
        elif action == 1:
            config, id_, at = words[at + 1], words[at + 2], at + 3
        elif action == 2:
            length = (words[at] >> 8 & 255) << 16 | words[at] >> 16
            return config, id_, container[4 * at + 4:4 * (at + 1 + length)]
        else:
            raise ValueError(f"driver action {action}")


class Program(simulator.Program):
    """Vela's .npz in a device's memory: constants in flash, commands and scratch in RAM."""
    FLASH, RAM, FAST = 0x28000000, 0x21000000, 0x60000000

    def __init__(self, library, npz, target, **options):
        super().__init__(library, npz)
        self.config, self.id, self.stream_bytes = commands_of(self.commands)
        sizes = {region: len(memory) for region, memory in self.regions().items()}
        aligned = lambda n: (n + 15) // 16 * 16
        # Nothing follows the constants or the maps: an access beyond them is one to no memory.
        self.bases = [self.FLASH, self.RAM, self.FAST]
        self.memory = Memory(flash=(self.FLASH, max(16, len(self.constants)), False),
                             ram=(self.RAM, max(16, sizes.get(1, 0)), True), fast=(self.FAST, max(16, sizes.get(2, 0)), True),
                             code=(0x70000000, aligned(len(self.stream_bytes)) + 16, True))
        self.memory.put(self.FLASH, self.constants)
        self.memory.put(0x70000000, self.stream_bytes)
        self.device = Device(library, target, self.memory, **options)

    def run_on_device(self, driver, inputs):
        for array, (_, _, region, offset) in zip(inputs, self.tensors("input"), strict=True):
            self.memory.put(self.bases[region] + offset, np.ascontiguousarray(array).tobytes())
        driver.check(self.config, self.id)
        driver.start(0x70000000, len(self.stream_bytes), self.bases)
        while self.device.work():
            pass
        assert self.device.line == 1, self.device.reports
        if not driver.finish():
            raise DriverError(f"{self.device.words()} {self.device.reports}")
        return [self.memory.get(self.bases[region] + offset, int(np.prod(shape)) * size)
                for shape, size, region, offset in self.tensors("output")]
