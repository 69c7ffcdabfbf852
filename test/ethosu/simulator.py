# SPDX-License-Identifier: Apache-2.0
"""The Ethos-U simulator through its C interface, and Vela's raw output on it."""
import ctypes
import pathlib

import numpy as np

REGIONS = 8


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_char * 48), ("message", ctypes.c_char * 464)]


class Options(ctypes.Structure):
    _fields_ = [("struct_bytes", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("plain_loops", ctypes.c_uint32),
                ("most_work", ctypes.c_double)]


class Info(ctypes.Structure):
    _fields_ = [("product", ctypes.c_uint32), ("macs", ctypes.c_uint32), ("container_version", ctypes.c_uint32),
                ("config_word", ctypes.c_uint32), ("id_word", ctypes.c_uint32), ("commands", ctypes.c_uint32),
                ("operations", ctypes.c_uint32), ("region_bytes", ctypes.c_uint64 * REGIONS),
                ("region_written", ctypes.c_uint8 * REGIONS)]


class Region(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_uint64)]


LINE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)


class Refused(Exception):
    def __init__(self, status, error):
        self.status, self.code, self.message = status, error.code.decode(), error.message.decode()
        super().__init__(f"{self.code}: {self.message}")


class Stream:
    """An opened command stream."""

    def __init__(self, library, commands, constants, threads=2, plain_loops=False, most_work=0.0):
        self.library = ctypes.CDLL(str(pathlib.Path(library).resolve()))
        self.library.tosaic_ethosu_close.argtypes = [ctypes.c_void_p]
        self.handle = ctypes.c_void_p()
        options = Options(ctypes.sizeof(Options), threads, plain_loops, most_work)
        error = Error()
        status = self.library.tosaic_ethosu_open(commands, ctypes.c_size_t(len(commands)), constants,
                                                 ctypes.c_size_t(len(constants)), ctypes.byref(options),
                                                 ctypes.byref(self.handle), ctypes.byref(error))
        if status:
            raise Refused(status, error)

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.tosaic_ethosu_close(self.handle)

    def describe(self, registers=False):
        info, lines = Info(), []
        status = self.library.tosaic_ethosu_describe(self.handle, ctypes.byref(info), int(registers),
                                                     LINE(lambda _, text: lines.append(text.decode())), None)
        assert status == 0
        return info, lines

    def run(self, regions, trace=False):
        """regions: number -> writable uint8 array. The lines of the trace."""
        given, lines, error = (Region * REGIONS)(), [], Error()
        for number, memory in regions.items():
            given[number] = Region(memory.ctypes.data, memory.nbytes)
        callback = LINE(lambda _, text: lines.append(text.decode())) if trace else LINE()
        status = self.library.tosaic_ethosu_run(self.handle, given, ctypes.c_size_t(REGIONS), callback, None, ctypes.byref(error))
        if status:
            raise Refused(status, error)
        return lines


class Program:
    """Vela's .npz (--output-format=raw)."""

    def __init__(self, library, npz, **options):
        with np.load(npz, allow_pickle=True) as file:
            self.fields = {name: file[name] for name in file.files}
        self.commands = self.fields["cmd_data"].tobytes()
        self.constants = self.fields["weight_data"].tobytes()
        self.stream = Stream(library, self.commands, self.constants, **options)

    def regions(self):
        memory = {}
        for name in ("scratch", "scratch_fast"):
            region, size = int(self.fields[f"{name}_region"]), int(self.fields[f"{name}_shape"][0])
            if size and region not in memory:
                memory[region] = np.full(size, 0xA5, np.uint8)  # never zeros: what is read before it is written shows
        return memory

    def tensors(self, kind):
        f = self.fields
        for i in range(len(f[f"{kind}_shape"])):
            yield f[f"{kind}_shape"][i], int(f[f"{kind}_elem_size"][i]), int(f[f"{kind}_region"][i]), int(f[f"{kind}_offset"][i])

    def run(self, inputs, trace=False):
        """Outputs as raw bytes, in the program's order."""
        memory = self.regions()
        for array, (shape, size, region, offset) in zip(inputs, self.tensors("input"), strict=True):
            data = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            assert data.nbytes == int(np.prod(shape)) * size, (array.shape, array.dtype, shape, size)
            memory[region][offset:offset + data.nbytes] = data
        self.lines = self.stream.run(memory, trace)
        return [memory[region][offset:offset + int(np.prod(shape)) * size].tobytes()
                for shape, size, region, offset in self.tensors("output")]
