# SPDX-License-Identifier: Apache-2.0
"""Runs the calls of every operator's domain in PyTorch and stores inputs and results next to the tests.

    build/release/bin/test_ops --list-domains | python test/ops/make_values.py [OPERATOR...]

Deterministic: each tensor's seed is a hash of operator, call and position.
"""
import collections
import json
import pathlib
import sys
import warnings
import zlib

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  (registers quantized_decomposed)

VALUES = pathlib.Path(__file__).resolve().parent / "values"
DTYPES = {
    "f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
    "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
}
INTEGERS = {"i": np.int32, "l": np.int64, "i8": np.int8, "u8": np.uint8}
EDGES = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1e-40, -1e-40, 1.1754944e-38,
     3.4028235e38, -3.4028235e38, 8388609.0, 0.49999997, -0.49999997, 1e-8, -1e-8, 88.0, -88.0, 3.0, -3.0, 100.5],
    dtype=np.float32)
FINITE = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, -3.5, 2.0**-10, -(2.0**-10), 2.0**-20, -(2.0**-20),
     0.25, -0.25, 3.0, -3.0, 6.0, -6.0, 10.0, -10.0, 0.75, -0.75, 20.0, -20.0],
    dtype=np.float32)
NOT_FINITE = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 2.5, -0.5], dtype=np.float32)
SPECIAL = {"e": EDGES, "f": FINITE, "n": NOT_FINITE}


@torch.library.custom_op("transformers::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    """What the operator that transformers registers is said to do: rows up to offs[g] by the matrix of group g."""
    result = torch.zeros(input.shape[0], weight.shape[2], dtype=input.dtype)
    start = 0
    for matrix, end in zip(weight, offs.tolist()):
        result[start:end] = input[start:end] @ matrix
        start = end
    return result


def int8_rows(weights, scales):
    """Weights of 8 bits, a scale for each row; there may be more scales than rows."""
    return weights.float() * scales[: weights.shape[0]].reshape(-1, *[1] * (weights.dim() - 1))


def through_codes(x, scale, zero_point):
    return (torch.clamp(torch.round(x * (1 / scale)) + zero_point, -128, 127) - zero_point) * scale


def linear_qcs4w(self, weight, scales):
    """Two quantised values in a byte, the first in its upper half, 8 added to each: how ExecuTorch's flow packs
    them."""
    codes = torch.stack([weight >> 4, weight & 15], -1).reshape(weight.shape[0], -1)[:, : self.shape[-1]].float() - 8
    return self @ (codes * scales[:, None]).t()


def linear_dq8ca_q4gsw(input, input_scales, input_zp, weights, weight_sums, weight_scales, group_size, bias=None):
    return torch.ops.et_vk.linear_q4gsw(through_codes(input, input_scales, input_zp), weights, weight_scales, group_size, bias)


def linear_q8ta_q8csw(x, input_scale, input_zero_point, weights, weight_sums, weight_scales, bias=None):
    return torch.nn.functional.linear(through_codes(x, input_scale, input_zero_point), int8_rows(weights, weight_scales), bias)


def q8ta_conv2d(x, input_scale, input_zero_point, weights, weight_sums, weight_scales, output_scale, output_zero_point, bias,
                kernel_size, stride, padding, dilation, groups, activation, output_padding=None):
    """Weights are [OC, KH, KW, IC / groups] with its last three dims as one, padded to fours."""
    high, wide = kernel_size
    channels = x.shape[1] // groups
    weights = weights[:, : high * wide * channels].reshape(-1, high, wide, channels).permute(0, 3, 1, 2)
    weights = int8_rows(weights, weight_scales)
    bias = None if bias is None else bias[: weights.shape[0]]
    real = (x.float() - input_zero_point) * input_scale
    if output_padding is None:
        y = torch.nn.functional.conv2d(real, weights, bias, stride, padding, dilation, groups)
    else:
        y = torch.nn.functional.conv_transpose2d(real, weights.transpose(0, 1), bias, stride, padding, output_padding, groups,
                                                 dilation)
    y = y.relu() if activation == "relu" else y
    return torch.ops.quantized_decomposed.quantize_per_tensor(y, output_scale, output_zero_point, -128, 127, torch.int8)


def q8ta_conv2d_transposed(*arguments):
    *first, kernel_size, stride, padding, output_padding, dilation, groups, activation = arguments
    return q8ta_conv2d(*first, kernel_size, stride, padding, dilation, groups, activation, output_padding)


def block_scaled(call):
    """ExecuTorch's operator on elements of 8 bits and scales that are given as bytes: the language of domains has no other
    constants of their types."""
    types = {"f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2}

    def run(input, weight_qdata, weight_scale, *arguments):
        elements = weight_qdata.view(types.get(arguments[-1], torch.uint8))
        return call(input, elements, weight_scale.view(torch.float8_e8m0fnu), *arguments)

    return run


# ExecuTorch registers Python functions for its Vulkan flow's operators. Those of these compute something else than what
# the flow means by them: they read weights in another order, or leave the activations as they are.
STATED = {f.__name__: f for f in (linear_qcs4w, linear_dq8ca_q4gsw, linear_q8ta_q8csw, q8ta_conv2d, q8ta_conv2d_transposed)}
STATED["q8ta_conv2d_pw"] = q8ta_conv2d


def tensor(generator, seed):
    """The tensor that a generator of the domain language stands for (README.md)."""
    kind, low, high, shape = (generator[k] for k in ("kind", "lowest", "highest", "shape"))
    random = np.random.default_rng(seed)
    if kind == "x":
        values = random.standard_normal(shape, dtype=np.float32)
    elif kind == "u":
        values = random.uniform(low, high, shape).astype(np.float32)
    elif kind == "s":
        values = np.linspace(low, high, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    elif kind in SPECIAL:
        values = np.resize(SPECIAL[kind], shape)
    elif kind == "b":
        values = random.integers(0, 2, shape) != 0
    else:
        values = random.integers(int(low), int(high), shape, dtype=INTEGERS[kind])
    return torch.from_numpy(np.asarray(values))


def argument(value, make):
    """A Python argument from the JSON of test_ops --list-domains; `make` makes a tensor and notes it."""
    if "tensor" in value:
        return make(value["tensor"][0])
    if "tensors" in value:
        return [make(g) if g else None for g in value["tensors"]]
    if "dtype" in value:
        return DTYPES[value["dtype"]]
    if "real" in value:
        return float(value["real"])
    if "reals" in value:
        return [float(v) for v in value["reals"]]
    return value["literal"]


def stored(result):
    """As a NumPy array; bfloat16, which NumPy has not, as two raw bytes, the way ml_dtypes stores it."""
    result = result.detach().contiguous()
    return result.view(torch.int16).numpy().view("V2") if result.dtype == torch.bfloat16 else result.numpy()


def run(case):
    """Inputs and outputs of one call, as named arrays."""
    arrays, inputs = {}, []

    def make(generator):
        seed = zlib.crc32(f"{case['operator']}|{case['text']}|{len(inputs)}".encode())
        inputs.append(tensor(generator, seed))
        arrays[f"{case['case']}.in.{len(inputs) - 1}"] = inputs[-1].numpy()
        return inputs[-1].clone()

    positional, named = [], {}
    formals = [a.name for a in overload(case)._schema.arguments]
    for entry in case["arguments"]:
        value = argument(entry["value"], make)
        in_order = len(positional) < len(formals) and formals[len(positional)] == entry["name"] and not named
        if in_order and not entry["keyword"]:
            positional.append(value)
        else:
            named[entry["name"]] = value
    if case["refused"]:
        return arrays
    with torch.no_grad():
        call = STATED.get(case["name"]) if case["namespace"] == "et_vk" else None
        if case["namespace"] == "tosa_mxfp" or case["name"] == "mxfp_linear":
            call = block_scaled(overload(case))
        results = (call or overload(case))(*positional, **named)
    results = results if isinstance(results, (tuple, list)) else [results]
    for k, result in enumerate(results):
        if case["zeros"]:
            result = torch.zeros_like(result)
        arrays[f"{case['case']}.out.{k}"] = stored(result)
    return arrays


def overload(case):
    if case["namespace"] == "et_vk":
        import executorch.backends.vulkan.custom_ops_lib  # noqa: F401  registers them
    if case["namespace"] == "tosa_mxfp" or case["name"] == "mxfp_linear":
        import executorch.backends.arm.ao_ext  # noqa: F401

        if case["name"] == "mxfp_linear":  # the same operator, by the name that tosaic's package gives it
            return torch.ops.tosa_mxfp.linear.default
    if case["namespace"] == "torchao":
        import torchao  # noqa: F401
    packet = getattr(getattr(torch.ops, case["namespace"]), case["name"])
    return getattr(packet, case["overload"])


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)

    wanted = set(sys.argv[1:])
    operators = collections.defaultdict(list)
    for line in sys.stdin:
        case = json.loads(line)
        operators[case["operator"]].append(case)
    VALUES.mkdir(exist_ok=True)
    failures = 0
    for name, cases in operators.items():
        if wanted and name not in wanted:
            continue
        arrays = {}
        try:
            for case in cases:
                arrays.update(run(case))
        except Exception as failure:  # report all of them, not only the first
            print(f"{name}: {case['text']}: {failure}", file=sys.stderr)
            failures += 1
            continue
        np.savez_compressed(VALUES / f"{name}.npz", **arrays)
        (VALUES / f"{name}.txt").write_text("".join(case["text"] + "\n" for case in cases))
    if not wanted:
        for path in VALUES.iterdir():
            if path.stem not in operators:
                path.unlink()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
