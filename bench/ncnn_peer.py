# SPDX-License-Identifier: Apache-2.0
"""What ncnn does with a model on a Vulkan device, in an environment of its own (bench/vulkan.py makes it).

    python ncnn_peer.py PARAM BIN EXPECTED SECONDS {fp32,fp16}

EXPECTED holds one batch of inputs and PyTorch's results of it. One process: load (device, weights, pipelines), the first run,
then medians of runs after half a second of warming up. Prints one JSON object of seconds, and how far the first run's result
is from PyTorch's, as a part of the largest.
"""
import json
import statistics
import sys
import time

import ncnn
import numpy as np


def main(param, weights, expected, seconds, precision):
    expected = np.load(expected)
    image, right = expected["input_0"][0][0], expected["float_0"][0][0]
    begin = time.perf_counter()
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    half = precision == "fp16"
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = half
    assert net.load_param(param) == 0 and net.load_model(weights) == 0
    assert net.opt.use_vulkan_compute, "ncnn found no Vulkan device"
    load = time.perf_counter() - begin

    def run():
        start = time.perf_counter()
        with net.create_extractor() as extractor:
            extractor.input("in0", ncnn.Mat(image))
            status, out = extractor.extract("out0")
            assert status == 0, f"ncnn's extract answers {status}"
            result = np.array(out)
        return time.perf_counter() - start, result

    first, result = run()
    distance = float(np.abs(result.reshape(right.shape) - right).max() / np.abs(right).max())
    assert distance < 0.1, f"ncnn computes something else: {distance} from PyTorch's results"
    until = time.perf_counter() + min(0.5, float(seconds))
    while time.perf_counter() < until:
        run()
    times, until = [], time.perf_counter() + float(seconds)
    while time.perf_counter() < until or len(times) < 5:
        times.append(run()[0])
    device = ncnn.get_gpu_info(ncnn.get_default_gpu_index())
    print(json.dumps({"load": load, "first": first, "hot": statistics.median(times), "distance": distance,
                      "version": ncnn.__version__, "device": device.device_name()}))


main(*sys.argv[1:])
