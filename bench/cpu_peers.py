# SPDX-License-Identifier: Apache-2.0
"""The runtimes that people would take instead on a CPU, one thing per process; prints one JSON object.

    python cpu_peers.py onnx MODEL.pt2 OUT.onnx                     as ONNX, by torch.onnx
    python cpu_peers.py onnx_int8 IN.onnx SAMPLES.npz OUT.onnx      in int8, by ONNX Runtime (QDQ, weights by channel)
    python cpu_peers.py lower MODEL.pt2 {float,int8} SAMPLES.npz OUT.pte   for ExecuTorch's runtime, to XNNPACK
    python cpu_peers.py {onnxruntime,openvino} THREADS RUNS MODEL.onnx INPUT.npy OUTPUT.npy
    python cpu_peers.py eager THREADS RUNS MODEL.pt2 INPUT.npy OUTPUT.npy
    python cpu_peers.py xnnpack THREADS RUNS PROGRAM.pte INPUT.npy OUTPUT.npy

A run gives the least and the median seconds of RUNS calls, after some that do not count, and writes what came out.
"""
import json
import statistics
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np

import peers


def timed(runs, output, call):
    """`call` gives an array."""
    for _ in range(3):
        result = call()
    np.save(output, np.asarray(result))
    seconds = []
    for _ in range(int(runs)):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return {"least": min(seconds), "median": statistics.median(seconds)}


def onnx(path, out):
    import torch

    program = torch.export.load(path)
    torch.onnx.export(program, dynamo=True, optimize=True, verbose=False).save(out)
    return {}


def onnx_int8(path, samples, out):
    import tempfile

    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with np.load(samples) as arrays:
        columns = list(arrays.values())

    class Reader(quantization.CalibrationDataReader):
        def __init__(self, names):
            self.rows = iter([dict(zip(names, row)) for row in zip(*columns)])

        def get_next(self):
            return next(self.rows, None)

    import onnxruntime
    names = [i.name for i in onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).get_inputs()]
    with tempfile.NamedTemporaryFile(suffix=".onnx") as prepared:
        quant_pre_process(path, prepared.name)
        quantization.quantize_static(prepared.name, out, Reader(names), per_channel=True,
                                     activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)
    return {}


def onnxruntime(threads, runs, path, given, output):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = int(threads), 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: np.load(given)}
    return timed(runs, output, lambda: session.run(None, feed)[0])


def openvino(threads, runs, path, given, output):
    import openvino as ov

    compiled = ov.Core().compile_model(path, "CPU", {
        "INFERENCE_NUM_THREADS": int(threads), "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request, x = compiled.create_infer_request(), np.load(given)
    return timed(runs, output, lambda: request.infer([x], share_inputs=True)[0])


def eager(threads, runs, path, given, output):
    import torch

    torch.set_num_threads(int(threads))
    module, x = torch.export.load(path).module(check_guards=False), torch.from_numpy(np.load(given))
    with torch.no_grad():
        return timed(runs, output, lambda: module(x))


def lower(path, kind, samples, out):
    with open(out, "wb") as file:
        file.write(peers.xnnpack_program(path, kind, samples))
    return {}


def xnnpack(threads, runs, path, given, output):
    import torch

    with open(path, "rb") as file:
        run = peers.xnnpack_method(int(threads), file.read())
    x = torch.from_numpy(np.load(given))
    return timed(runs, output, lambda: run([x])[0])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    called = {f.__name__: f for f in (onnx, onnx_int8, lower, onnxruntime, openvino, eager, xnnpack)}[sys.argv[1]]
    print(json.dumps(called(*sys.argv[2:])))
