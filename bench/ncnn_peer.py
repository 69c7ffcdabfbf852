# SPDX-License-Identifier: Apache-2.0
"""What ncnn does with a model on a Vulkan device, in an environment of its own (bench/vulkan.py makes it).

    python ncnn_peer.py PARAM BIN C H W SECONDS {fp32,fp16}

One process: load (device, weights, pipelines), the first run, then medians of runs after half a second of warming up.
Prints one JSON object of seconds.
"""
import json
import statistics
import sys
import time

import ncnn
import numpy as np


def main(param, weights, c, h, w, seconds, precision):
    image = np.random.default_rng(0).standard_normal((int(c), int(h), int(w))).astype(np.float32)
    begin = time.perf_counter()
    net = ncnn.Net()
    net.opt.use_vulkan_compute = True
    half = precision == "fp16"
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = half
    assert net.load_param(param) == 0 and net.load_model(weights) == 0
    load = time.perf_counter() - begin

    def run():
        start = time.perf_counter()
        with net.create_extractor() as extractor:
            extractor.input("in0", ncnn.Mat(image))
            status, out = extractor.extract("out0")
            assert status == 0
            np.array(out)
        return time.perf_counter() - start

    first = run()
    until = time.perf_counter() + min(0.5, float(seconds))
    while time.perf_counter() < until:
        run()
    times, until = [], time.perf_counter() + float(seconds)
    while time.perf_counter() < until or len(times) < 5:
        times.append(run())
    print(json.dumps({"load": load, "first": first, "hot": statistics.median(times), "version": ncnn.__version__}))


main(*sys.argv[1:])
