# SPDX-License-Identifier: Apache-2.0
"""Small TOSA networks made to reach each semantic of the NPU: traversal orders, scales, paddings, tables, layouts.

`networks()` gives name -> builder of a .tosa file; every one is seeded by its name.
"""
import hashlib
import itertools

import numpy as np
import serializer.tosa_serializer as ts
from tosa.DType import DType
from tosa.Op import Op
from tosa.ResizeMode import ResizeMode
from tosa.RoundingMode import RoundingMode

I8, I16, I32, I48 = DType.INT8, DType.INT16, DType.INT32, DType.INT48
NUMPY = {I8: np.int8, I16: np.int16, I32: np.int32}


class Value:
    def __init__(self, name, shape, dtype):
        self.name, self.shape, self.dtype = name, tuple(int(d) for d in shape), dtype


class Network:
    def __init__(self, name):
        self.file = ts.TosaSerializer("", ts.ConstMode.EMBED, 1, 0, 0, False)
        self.random = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))

    def input(self, shape, dtype=I8):
        return Value(self.file.addPlaceholder(list(shape), dtype, None).name, shape, dtype)

    def constant(self, values, dtype, shape=None):
        values = np.asarray(values)
        shape = values.shape if shape is None else shape
        return Value(self.file.addConst(list(shape), dtype, values.reshape(-1).tolist()).name, shape, dtype)

    def shape(self, values):
        return Value(self.file.addConst([len(values)], DType.SHAPE, list(values)).name, [len(values)], DType.SHAPE)

    def node(self, op, inputs, shape, dtype, attribute=None, *values):
        made = None
        if attribute:
            made = ts.TosaSerializerAttribute()
            getattr(made, attribute)(*values)
        out = self.file.addIntermediate([int(d) for d in shape], dtype)
        self.file.addOperator(op, [i.name for i in inputs], [out.name], made)
        return Value(out.name, shape, dtype)

    def finish(self, *outputs):
        for value in outputs:
            self.file.currRegion.currBasicBlock.addOutput(value.name)
        return bytes(self.file.serialize())

    # Operators, with random weights and scales that use the output's range.
    def window(self, x, kernel, stride, pad, dilation):
        return [(x.shape[1 + i] + pad[2 * i] + pad[2 * i + 1] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in (0, 1)]

    def conv(self, x, outputs, kernel=(1, 1), stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), zero=0, sparse=0.0):
        weights = self.random.integers(-127, 128, (outputs, *kernel, x.shape[3]))
        weights[self.random.random(weights.shape) < sparse] = 0
        acc = I48 if x.dtype == I16 else I32
        h, w = self.window(x, kernel, stride, pad, dilation)
        return self.node(Op.CONV2D, [x, self.constant(weights, I8), self.constant(self.random.integers(-5000, 5000, outputs), acc),
                                     self.constant([zero], x.dtype), self.constant([0], I8)],
                         (x.shape[0], h, w, outputs), acc, "Conv2dAttribute", list(pad), list(stride), list(dilation), False, acc)

    def depthwise(self, x, kernel=(3, 3), stride=(1, 1), pad=(1, 1, 1, 1), dilation=(1, 1), zero=0, multiplier=1):
        acc = I48 if x.dtype == I16 else I32
        outputs = x.shape[3] * multiplier
        h, w = self.window(x, kernel, stride, pad, dilation)
        return self.node(Op.DEPTHWISE_CONV2D, [x, self.constant(self.random.integers(-127, 128, (*kernel, x.shape[3], multiplier)), I8),
                                               self.constant(self.random.integers(-5000, 5000, outputs), acc),
                                               self.constant([zero], x.dtype), self.constant([0], I8)],
                         (x.shape[0], h, w, outputs), acc, "DepthwiseConv2dAttribute", list(pad), list(stride), list(dilation), False, acc)

    def transpose_conv(self, x, outputs, kernel=(3, 3), stride=(2, 2), zero=0):
        acc = I48 if x.dtype == I16 else I32
        h, w = [(x.shape[1 + i] - 1) * stride[i] + kernel[i] for i in (0, 1)]
        return self.node(Op.TRANSPOSE_CONV2D, [x, self.constant(self.random.integers(-127, 128, (outputs, *kernel, x.shape[3])), I8),
                                               self.constant(self.random.integers(-5000, 5000, outputs), acc),
                                               self.constant([zero], x.dtype), self.constant([0], I8)],
                         (x.shape[0], h, w, outputs), acc, "TransposeConv2dAttribute", [0, 0, 0, 0], list(stride), False, acc)

    def rescale(self, x, dtype, real, zero_in=0, zero_out=0, per_channel=False, rounding=RoundingMode.SINGLE_ROUND):
        wide = x.dtype != I48
        channels = x.shape[-1] if per_channel else 1
        reals = real * self.random.uniform(0.6, 1.4, channels) if per_channel else [real]
        bits = 31 if wide else 15
        multipliers, shifts = [], []
        for r in reals:
            mantissa, exponent = np.frexp(r)
            m = int(round(mantissa * (1 << bits)))
            if m == 1 << bits:
                m, exponent = m // 2, exponent + 1
            multipliers.append(m), shifts.append(bits - int(exponent))
        return self.node(Op.RESCALE, [x, self.constant(multipliers, I32 if wide else I16), self.constant(shifts, I8),
                                      self.constant([zero_in], x.dtype), self.constant([zero_out], dtype)],
                         x.shape, dtype, "RescaleAttribute", wide, rounding, per_channel, False, False)

    def narrow(self, x, dtype=I8, per_channel=True, zero=0, inputs=None):
        """A convolution's sums to `dtype`, using about all of its range."""
        spread = 74 * 74 * np.sqrt(inputs) if dtype == I8 else 18000 * 74 * np.sqrt(inputs)
        return self.rescale(x, dtype, (60 if dtype == I8 else 15000) / spread, zero_out=zero, per_channel=per_channel)

    def clamp(self, x, low, high):
        return self.node(Op.CLAMP, [x], x.shape, x.dtype, "ClampAttribute", self.file.builder,
                         np.asarray([low], NUMPY[x.dtype]).tobytes(), np.asarray([high], NUMPY[x.dtype]).tobytes(), 1)

    def binary(self, op, a, b, attribute, *values):
        return self.node(op, [a, b], np.broadcast_shapes(a.shape, b.shape), I32 if op == Op.MUL else a.dtype, attribute, *values)

    def add(self, a, b):
        return self.binary(Op.ADD, a, b, "AddAttribute")

    def sub(self, a, b):
        return self.binary(Op.SUB, a, b, "SubAttribute")

    def mul(self, a, b):
        return self.node(Op.MUL, [a, b, self.constant([0], I8)], np.broadcast_shapes(a.shape, b.shape), I32, "MulAttribute")

    def table(self, x):
        values = self.random.integers(-128, 128, 256) if x.dtype == I8 else np.cumsum(self.random.integers(-120, 121, 513)).clip(-32768, 32767)
        return self.node(Op.TABLE, [x, self.constant(values, x.dtype)], x.shape, I8 if x.dtype == I8 else I32, "TableAttribute")

    def average(self, x, kernel, stride=(1, 1), pad=(0, 0, 0, 0), zero=0):
        h, w = self.window(x, kernel, stride, pad, (1, 1))
        return self.node(Op.AVG_POOL2D, [x, self.constant([zero], x.dtype), self.constant([zero], x.dtype)], (x.shape[0], h, w, x.shape[3]),
                         x.dtype, "AvgPool2dAttribute", list(kernel), list(stride), list(pad), I32)

    def maximum_pool(self, x, kernel, stride=(1, 1), pad=(0, 0, 0, 0)):
        h, w = self.window(x, kernel, stride, pad, (1, 1))
        return self.node(Op.MAX_POOL2D, [x], (x.shape[0], h, w, x.shape[3]), x.dtype, "MaxPool2dAttribute", list(kernel), list(stride), list(pad), 1)

    def reduce_sum(self, x, axis):
        shape = list(x.shape)
        shape[axis] = 1
        return self.node(Op.REDUCE_SUM, [x], shape, x.dtype, "ReduceSumAttribute", axis)

    def matmul(self, a, b, zero_a=0, zero_b=0):
        return self.node(Op.MATMUL, [a, b, self.constant([zero_a], a.dtype), self.constant([zero_b], b.dtype)],
                         (a.shape[0], a.shape[1], b.shape[2]), I48 if a.dtype == I16 else I32, "MatMulAttribute")

    def reshape(self, x, shape):
        return self.node(Op.RESHAPE, [x, self.shape(shape)], shape, x.dtype, "ReshapeAttribute")

    def argmax(self, x, axis):
        return self.node(Op.ARGMAX, [x], [d for i, d in enumerate(x.shape) if i != axis], I32, "ArgMaxAttribute", axis, 1)

    def twice_as_large(self, x):
        scale, zeros, border = self.shape([2, 1, 2, 1]), self.shape([0, 0]), self.shape([1, 1])
        return self.node(Op.RESIZE, [x, scale, zeros, border], (1, 2 * x.shape[1], 2 * x.shape[2], x.shape[3]), x.dtype,
                         "ResizeAttribute", ResizeMode.NEAREST)

    def transpose(self, x, order):
        return self.node(Op.TRANSPOSE, [x], [x.shape[i] for i in order], x.dtype, "TransposeAttribute", list(order))

    def concat(self, values, axis):
        shape = list(values[0].shape)
        shape[axis] = sum(v.shape[axis] for v in values)
        return self.node(Op.CONCAT, values, shape, values[0].dtype, "ConcatAttribute", axis)

    def reverse(self, x, axis):
        return self.node(Op.REVERSE, [x], x.shape, x.dtype, "ReverseAttribute", axis)


def conv_case(n, dtype, size, depth, outputs, kernel, stride, dilation, pad, zero, per_channel=True, sparse=0.0):
    x = n.input((1, *size, depth), dtype)
    y = n.conv(x, outputs, kernel, stride, pad, dilation, zero if dtype == I8 else 0, sparse)
    return n.finish(n.narrow(y, dtype, per_channel, zero // 3 if dtype == I8 else 0, kernel[0] * kernel[1] * depth))


def depthwise_case(n, dtype, size, depth, kernel, stride, dilation, pad, zero, multiplier=1):
    x = n.input((1, *size, depth), dtype)
    y = n.depthwise(x, kernel, stride, pad, dilation, zero if dtype == I8 else 0, multiplier)
    return n.finish(n.narrow(y, dtype, True, zero // 2 if dtype == I8 else 0, kernel[0] * kernel[1]))


def chain_case(n, dtype, depth):
    """Convolutions in a row: bricks between them, cascades and rolling buffers where memory is short."""
    x = n.input((1, 34, 30, 3), dtype)
    y = n.narrow(n.conv(x, depth, (3, 3), (2, 2), (0, 1, 0, 1)), dtype, inputs=27)
    y = n.narrow(n.depthwise(y, (3, 3), (1, 1)), dtype, inputs=9)
    skip = n.narrow(n.conv(y, depth), dtype, inputs=depth)
    y = n.narrow(n.conv(skip, 3 * depth), dtype, inputs=depth)
    y = n.narrow(n.depthwise(y, (5, 5), (1, 1), (2, 2, 2, 2)), dtype, inputs=25)
    y = n.narrow(n.conv(y, depth), dtype, inputs=3 * depth)
    total = n.add(n.rescale(skip, I32, 0.7 * 2 ** (20 if dtype == I8 else 12)), n.rescale(y, I32, 0.4 * 2 ** (20 if dtype == I8 else 12)))
    return n.finish(n.rescale(total, dtype, 2.0 ** -(20 if dtype == I8 else 12)))


def scaled_sum(n, dtype, op, left, right, out, shape_b, swap=False):
    """a * left + b * right, rescaled as quantisers write it."""
    a, b = n.input((1, 9, 7, 19), dtype), n.input(shape_b, dtype)
    bits = 20 if dtype == I8 else 14
    za, zb, zo = (-7, 11, 5) if dtype == I8 else (0, 0, 0)
    x, y = n.rescale(a, I32, left * 2 ** bits, za), n.rescale(b, I32, right * 2 ** bits, zb)
    if swap:
        x, y = y, x
    return n.finish(n.rescale(getattr(n, op)(x, y), dtype, out / 2 ** bits, zero_out=zo))


def constant_sum(n, dtype, shape):
    """A constant in the tensor's own width next to the largest factor, as tosaic writes it."""
    bits, high = (19, 127) if dtype == I8 else (14, 32767)
    x = n.rescale(n.input((1, 9, 7, 19), dtype), I32, 2.0 ** bits, -7 if dtype == I8 else 0)
    values = np.arange(np.prod(shape)) * 12347 % (2 * high) - high
    c = n.rescale(n.constant(values, dtype, shape), I32, 1025.25 if dtype == I8 else 2.25)
    return n.finish(n.rescale(n.add(x, c), dtype, 0.9 / 2 ** bits))


def whole_scales(n, dtype, op, left, right):
    """Factors that fit 16 bits without a shift, or that are one."""
    a, b = n.input((1, 9, 7, 19), dtype), n.input((1, 9, 7, 19), dtype)
    x, y = n.rescale(a, I32, left), n.rescale(b, I32, right)
    return n.finish(n.rescale(getattr(n, op)(x, y), dtype, 0.9 / (abs(left) + abs(right))))


def product(n, dtype, shape_b):
    a, b = n.input((1, 8, 5, 21), dtype), n.input(shape_b, dtype)
    za, zb = (-3, 9) if dtype == I8 else (0, 0)
    x, y = n.rescale(a, I32, 1.0, za), n.rescale(b, I32, 1.0, zb)
    return n.finish(n.rescale(n.mul(x, y), dtype, 1 / 150 if dtype == I8 else 1 / 40000, zero_out=4 if dtype == I8 else 0))


def matmul_case(n, dtype, m, k, c):
    a, b = n.input((2, m, k), dtype), n.input((2, k, c), dtype)
    y = n.matmul(a, b, 3 if dtype == I8 else 0, -2 if dtype == I8 else 0)
    return n.finish(n.rescale(y, dtype, 1 / (90 * np.sqrt(k)) if dtype == I8 else 1 / (18000 * np.sqrt(k))))


def scaled_first(n, dtype, shape, after):
    """scale * x with the smaller factor first, so that the IFM is the one that is stretched (U85), and then an operation
    that does not stretch: the broadcast register keeps what the product wanted."""
    scale, x = n.input(shape, dtype), n.input((1, 8, 10, 24), dtype)
    zeros = (3, -5) if dtype == I8 else (0, 0)
    y = n.mul(n.rescale(scale, I32, 1.0, zeros[0]), n.rescale(x, I32, 1.0, zeros[1]))
    return n.finish(after(n, n.rescale(y, dtype, 1 / 150 if dtype == I8 else 1 / 40000)))


AFTER_A_BROADCAST = {
    "conv": lambda n, y: n.narrow(n.conv(y, 20, (3, 3), pad=(1, 1, 1, 1)), y.dtype, inputs=216),
    "depthwise": lambda n, y: n.narrow(n.depthwise(y), y.dtype, inputs=9),
    "transpose_conv": lambda n, y: n.narrow(n.transpose_conv(y, 12), y.dtype, inputs=216),
    "average": lambda n, y: n.average(y, (2, 2), (2, 2)),
    "maximum": lambda n, y: n.maximum_pool(y, (2, 2), (2, 2)),
    "sum": lambda n, y: n.rescale(n.reduce_sum(n.rescale(y, I32, 1.0), 3), y.dtype, 0.2),
    "transpose": lambda n, y: n.transpose(y, (0, 2, 3, 1)),
    "table": lambda n, y: n.table(y) if y.dtype == I8 else n.rescale(n.table(y), I16, 1 / 128),
    "matmul": lambda n, y: product_of(n, n.reshape(y, (1, 80, 24)), n.input((1, 24, 17), y.dtype)),
    "argmax": lambda n, y: n.argmax(y, 3),
    "resize": lambda n, y: n.twice_as_large(y),
}


def product_of(n, a, b):
    spread = 90 if a.dtype == I8 else 18000
    zeros = (3, -4) if a.dtype == I8 else (0, 0)
    return n.rescale(n.matmul(a, b, *zeros), a.dtype, 1 / (spread * np.sqrt(a.shape[2])))


def masked_attention(n, dtype, heads, tokens, depth):
    q, k, v, mask = [n.input(s, dtype) for s in [(heads, tokens, depth)] * 3 + [(1, tokens, tokens)]]
    scores, bits = product_of(n, q, n.transpose(k, (0, 2, 1))), 20 if dtype == I8 else 14
    scores = n.rescale(n.add(n.rescale(mask, I32, 0.4 * 2 ** bits), n.rescale(scores, I32, 0.9 * 2 ** bits)), dtype, 0.7 / 2 ** bits)
    return n.finish(product_of(n, AFTER_A_BROADCAST["table"](n, scores), v))


def computed_weights(n, dtype, kernel, depthwise=False):
    """Weights that are an input: sums that stay inside the NPU from one command to the next (U85)."""
    x, acc, outputs = n.input((1, 9, 8, 16), dtype), I48 if dtype == I16 else I32, 16 if depthwise else 20
    weights = n.input((*kernel, 16, 1) if depthwise else (outputs, *kernel, 16), I8)
    h, w = n.window(x, kernel, (1, 1), (0, 0, 0, 0), (1, 1))
    operands = [x, weights, n.constant(n.random.integers(-5000, 5000, outputs), acc), n.constant([3 if dtype == I8 else 0], dtype), n.constant([0], I8)]
    op, name = (Op.DEPTHWISE_CONV2D, "DepthwiseConv2dAttribute") if depthwise else (Op.CONV2D, "Conv2dAttribute")
    y = n.node(op, operands, (1, h, w, outputs), acc, name, [0] * 4, [1, 1], [1, 1], False, acc)
    return n.finish(n.narrow(y, dtype, False, inputs=kernel[0] * kernel[1] * (1 if depthwise else 16)))


def gather_case(n, dtype, batch, rows, depth, count):
    """Indices that are computed; with a batch, a list in three dimensions."""
    values = n.input((batch, rows, depth), dtype)
    indices = n.rescale(n.input((batch, count), I8), I32, (rows - 1) / 255, -128)
    return n.finish(n.node(Op.GATHER, [values, indices], (batch, count, depth), dtype, "GatherAttribute"))


def scatter_case(n, dtype, batch, rows, depth, count):
    values, new = n.input((batch, rows, depth), dtype), n.input((batch, count, depth), dtype)
    indices = n.constant([n.random.permutation(rows)[:count] for _ in range(batch)], I32)
    return n.finish(n.node(Op.SCATTER, [values, indices, new], (batch, rows, depth), dtype, "ScatterAttribute"))


def clamp_case(n, dtype):
    x = n.input((1, 9, 8, 24), dtype)
    y = n.narrow(n.conv(x, 20, (3, 3), pad=(1, 1, 1, 1)), dtype, inputs=216)
    return n.finish(n.clamp(y, -9, 77) if dtype == I8 else n.clamp(y, -3000, 20011))


def table_case(n, dtype):
    x = n.input((1, 9, 8, 24), dtype)
    y = n.narrow(n.conv(x, 20, (3, 3), pad=(1, 1, 1, 1)), dtype, inputs=216)
    t = n.table(y)
    return n.finish(t if dtype == I8 else n.rescale(t, I16, 1 / 128))


def networks():
    """name -> function that gives the file's bytes. A name that begins with u85_ is for that product alone."""
    cases = {}

    def add(name, function, *arguments):
        cases[name] = lambda: function(Network(name), *arguments)

    short = {I8: "i8", I16: "i16"}
    for dtype in (I8, I16):
        t = short[dtype]
        shapes = [((7, 9), 16, 24), ((12, 5), 3, 17), ((4, 6), 70, 40), ((5, 5), 130, 9), ((1, 1), 96, 200), ((3, 4), 33, 65)]
        kernels = [((1, 1), (1, 1), (1, 1)), ((3, 3), (1, 1), (1, 1)), ((3, 3), (2, 2), (1, 1)), ((2, 3), (1, 2), (1, 1)),
                   ((3, 3), (1, 1), (2, 2)), ((5, 7), (1, 1), (1, 1)), ((9, 3), (3, 1), (1, 1)), ((3, 10), (1, 1), (1, 1)), ((5, 5), (1, 1), (2, 1))]
        for i, ((size, depth, outputs), (kernel, stride, dilation)) in enumerate(itertools.product(shapes, kernels)):
            if (i * 7 + (dtype == I16)) % 3 and kernel != (3, 3):
                continue
            extent = [(kernel[a] - 1) * dilation[a] for a in (0, 1)]
            pad = (extent[0] // 2, extent[0] - extent[0] // 2, extent[1] // 2, extent[1] - extent[1] // 2)
            size = tuple(s - (s + pad[2 * a] + pad[2 * a + 1] - extent[a] - 1) % stride[a] for a, s in enumerate(size))
            size = tuple(max(s, 1) for s in size)
            add(f"conv_{t}_{size[0]}x{size[1]}x{depth}_{outputs}_k{kernel[0]}x{kernel[1]}_s{stride[0]}{stride[1]}_d{dilation[0]}{dilation[1]}",
                conv_case, dtype, size, depth, outputs, kernel, stride, dilation, pad, 5)
        for size, depth, kernel, stride, dilation in [((9, 8), 24, (3, 3), (1, 1), (1, 1)), ((9, 9), 17, (3, 3), (2, 2), (1, 1)), ((11, 7), 70, (5, 5), (1, 1), (1, 1)),
                                                      ((8, 13), 33, (3, 3), (1, 1), (2, 2)), ((12, 12), 8, (7, 9), (1, 1), (1, 1)), ((12, 14), 40, (2, 4), (2, 2), (1, 1))]:
            extent = [(kernel[a] - 1) * dilation[a] for a in (0, 1)]
            pad = (extent[0] // 2, extent[0] - extent[0] // 2, extent[1] // 2, extent[1] - extent[1] // 2)
            size = tuple(s - (s + pad[2 * a] + pad[2 * a + 1] - extent[a] - 1) % stride[a] for a, s in enumerate(size))
            add(f"depthwise_{t}_{size[0]}x{size[1]}x{depth}_k{kernel[0]}x{kernel[1]}_s{stride[0]}{stride[1]}_d{dilation[0]}{dilation[1]}",
                depthwise_case, dtype, size, depth, kernel, stride, dilation, pad, -11)
        add(f"depthwise_{t}_multiplier", depthwise_case, dtype, (9, 8), 5, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 4, 3)
        add(f"conv_{t}_global_scale", conv_case, dtype, (9, 8), 24, 20, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 9, False)
        add(f"conv_{t}_sparse", conv_case, dtype, (9, 8), 64, 48, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), 0, True, 0.8)
        add(f"chain_{t}_16", chain_case, dtype, 16)
        add(f"chain_{t}_40", chain_case, dtype, 40)
        for i, shape_b in enumerate([(1, 9, 7, 19), (1, 1, 1, 19), (1, 1, 1, 1), (1, 9, 1, 19)]):
            add(f"add_{t}_{i}", scaled_sum, dtype, "add", 0.83, 0.31, 0.9, shape_b)
            add(f"add_small_left_{t}_{i}", scaled_sum, dtype, "add", 0.22, 0.97, 0.8, shape_b)
            add(f"sub_{t}_{i}", scaled_sum, dtype, "sub", 0.6, 0.9, 0.9, shape_b)
            add(f"sub_swapped_{t}_{i}", scaled_sum, dtype, "sub", 0.6, 0.9, 0.9, shape_b, True)
        for i, shape in enumerate([(1, 9, 7, 19), (1, 1, 1, 19), (1, 1, 1, 1)]):
            add(f"add_constant_{t}_{i}", constant_sum, dtype, shape)
        # A first layer whose stride stands in the channels, and one factor per channel.
        add(f"conv_{t}_packed_columns", conv_case, dtype, (24, 12), 6, 32, (7, 4), (2, 1), (1, 1), (3, 2, 2, 1), 5)
        add(f"depthwise_{t}_1x1_row", depthwise_case, dtype, (1, 65), 64, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 0)
        for op in ("add", "sub"):
            add(f"{op}_whole_scales_{t}", whole_scales, dtype, op, 3.0, 3.0)
            add(f"{op}_unequal_whole_scales_{t}", whole_scales, dtype, op, 1.0, 6.0)  # U55: refused, see the page
            largest = 0.5 if dtype == I8 else 1.0  # 2^19 or 2^14: what makes one operand's scale a plain shift
            add(f"{op}_one_scale_left_{t}", scaled_sum, dtype, op, 0.31, largest, 0.9, (1, 9, 7, 19))
            add(f"{op}_one_scale_right_{t}", scaled_sum, dtype, op, largest, 0.23, 0.9, (1, 9, 7, 19))
            add(f"{op}_one_scale_broadcast_{t}", scaled_sum, dtype, op, largest, 0.23, 0.9, (1, 1, 1, 19), op == "sub")
            add(f"{op}_unscaled_left_{t}", whole_scales, dtype, op, 1.0, 0.71)
            add(f"{op}_unscaled_right_{t}", whole_scales, dtype, op, 0.71, 1.0)
        for i, shape_b in enumerate([(1, 8, 5, 21), (1, 1, 1, 21), (1, 8, 1, 1)]):
            add(f"mul_{t}_{i}", product, dtype, shape_b)
        add(f"matmul_{t}", matmul_case, dtype, 9, 35, 6)
        add(f"matmul_large_{t}", matmul_case, dtype, 17, 70, 33)
        add(f"clamp_{t}", clamp_case, dtype)
        add(f"table_{t}", table_case, dtype)
        for kernel, stride, pad in [((2, 2), (2, 2), (0, 0, 0, 0)), ((3, 3), (1, 1), (1, 1, 1, 1)), ((3, 3), (2, 2), (1, 1, 1, 1)), ((7, 5), (1, 1), (0, 0, 0, 0)),
                                    ((8, 8), (1, 1), (0, 0, 0, 0)), ((10, 11), (1, 1), (0, 0, 0, 0))]:
            add(f"average_{t}_{kernel[0]}x{kernel[1]}_s{stride[0]}_p{pad[0]}", lambda n, dtype=dtype, kernel=kernel, stride=stride, pad=pad:
                (lambda x: n.finish(n.average(x, kernel, stride, pad, 6 if dtype == I8 else 0)))(n.input((1, 11 + (kernel[0] == 2) + (kernel[0] == 8), 11 + (kernel[0] == 2), 20), dtype)))
            add(f"maximum_{t}_{kernel[0]}x{kernel[1]}_s{stride[0]}_p{pad[0]}", lambda n, dtype=dtype, kernel=kernel, stride=stride, pad=pad:
                (lambda x: n.finish(n.maximum_pool(n.rescale(x, dtype, 0.5, zero_out=-90 if dtype == I8 else 0), kernel, stride, pad)))(n.input((1, 11 + (kernel[0] == 2) + (kernel[0] == 8), 11 + (kernel[0] == 2), 20), dtype)))
        for outputs, kernel, stride in [(12, (3, 3), (2, 2)), (9, (2, 2), (2, 2)), (20, (4, 4), (2, 2)), (5, (3, 3), (1, 1))]:
            add(f"transpose_conv_{t}_{outputs}_k{kernel[0]}_s{stride[0]}", lambda n, dtype=dtype, outputs=outputs, kernel=kernel, stride=stride:
                (lambda x: n.finish(n.narrow(n.transpose_conv(x, outputs, kernel, stride, 3 if dtype == I8 else 0), dtype, inputs=9 * 20)))(n.input((1, 6, 7, 20), dtype)))
        for order in [(0, 2, 1, 3), (0, 1, 3, 2), (0, 3, 1, 2), (0, 2, 3, 1), (0, 3, 2, 1)]:
            add(f"transpose_{t}_{''.join(map(str, order))}", lambda n, dtype=dtype, order=order:
                (lambda x: n.finish(n.transpose(x, order)))(n.input((1, 6, 9, 21), dtype)))
        for axis in (1, 2, 3):
            add(f"concat_{t}_{axis}", lambda n, dtype=dtype, axis=axis:
                (lambda x, y: n.finish(n.concat([x, n.rescale(y, dtype, 0.7)], axis)))(n.input((1, 6, 9, 21), dtype), n.input((1, 6, 9, 21), dtype)))
            add(f"reverse_{t}_{axis}", lambda n, dtype=dtype, axis=axis: (lambda x: n.finish(n.reverse(x, axis)))(n.input((1, 6, 9, 21), dtype)))
            add(f"reduce_sum_{t}_{axis}", lambda n, dtype=dtype, axis=axis:
                (lambda x: n.finish(n.rescale(n.reduce_sum(n.rescale(x, I32, 1.0, 5 if dtype == I8 else 0), axis), dtype, 0.2)))(n.input((1, 6, 9, 21), dtype)))
    # Batches: Vela makes a command for each image, or puts the batch in the height.
    for dtype in (I8, I16):
        t = short[dtype]
        add(f"batch_conv_{t}", lambda n, dtype=dtype: (lambda x: n.finish(n.narrow(n.conv(x, 12, (3, 3), (2, 1), (1, 1, 1, 1)), dtype, inputs=99)))(
            n.input((3, 9, 8, 11), dtype)))
        add(f"batch_linear_{t}", lambda n, dtype=dtype: (lambda x: n.finish(n.narrow(n.conv(x, 30), dtype, inputs=40)))(n.input((5, 1, 1, 40), dtype)))
        add(f"batch_depthwise_{t}", lambda n, dtype=dtype: (lambda x: n.finish(n.narrow(n.depthwise(x), dtype, inputs=9)))(n.input((3, 7, 6, 20), dtype)))
        add(f"batch_average_{t}", lambda n, dtype=dtype: (lambda x: n.finish(n.average(x, (2, 3), (2, 1))))(n.input((3, 8, 7, 9), dtype)))
        add(f"batch_maximum_{t}", lambda n, dtype=dtype: (lambda x: n.finish(n.maximum_pool(x, (3, 2), (1, 2), (1, 1, 0, 0))))(n.input((3, 8, 8, 9), dtype)))
        add(f"batch_transpose_{t}", lambda n, dtype=dtype: (lambda x: n.finish(n.transpose(x, (0, 2, 3, 1))))(n.input((3, 5, 6, 7), dtype)))
    # A zero point taken off by a SUB with a scalar, then sums that are turned: a broadcast register that outlives the SUB.
    add("mean_of_two_axes", lambda n: (lambda x: n.finish(n.rescale(n.reduce_sum(n.reduce_sum(n.rescale(x, I32, 1.0, -75), 2), 1), I8, 1 / 90)))(
        n.input((1, 8, 8, 8))))
    for name in AFTER_A_BROADCAST:
        only = "u85_" if name in ("argmax", "resize") else ""
        add(f"{only}scaled_first_{name}", scaled_first, (I8, I16)[name in ("depthwise", "sum", "table", "argmax")], (1, 1, 1, 24), AFTER_A_BROADCAST[name])
    for i, shape in enumerate([(1, 1, 1, 1), (1, 8, 1, 24), (1, 1, 10, 1)]):
        add(f"u85_scaled_first_{i}", scaled_first, (I8, I16)[i % 2], shape, AFTER_A_BROADCAST["conv"])
    add("masked_attention_i8", masked_attention, I8, 4, 12, 16)
    add("u85_masked_attention_i16", masked_attention, I16, 3, 10, 24)
    add("u85_computed_weights_i8", computed_weights, I8, (1, 1))
    add("u85_computed_weights_i8_3x2", computed_weights, I8, (3, 2))
    add("u85_computed_weights_i16_3x2", computed_weights, I16, (3, 2))
    add("u85_computed_weights_depthwise", computed_weights, I8, (3, 3), True)
    # Strides above three: a command for each element of the kernel.
    add("u85_depthwise_stride_4", depthwise_case, I8, (19, 15), 20, (3, 3), (4, 4), (1, 1), (0, 0, 0, 0), 5)
    add("u85_conv_stride_5", conv_case, I16, (23, 15), 9, 18, (5, 5), (5, 3), (1, 1), (1, 1, 1, 1), 0)
    for dtype, batch, rows, depth, count in [(I8, 3, 10, 16, 7), (I16, 2, 5, 3, 40), (I32, 4, 33, 1, 9), (I8, 1, 9, 20, 5)]:
        t = {I8: "i8", I16: "i16", I32: "i32"}[dtype]
        add(f"u85_gather_{t}_{batch}x{rows}x{depth}_{count}", gather_case, dtype, batch, rows, depth, count)
        add(f"u85_scatter_{t}_{batch}x{rows}x{depth}", scatter_case, dtype, batch, rows, depth, min(rows, count))
    for rounding in (RoundingMode.SINGLE_ROUND, RoundingMode.DOUBLE_ROUND):
        for real in (0.0123, 0.5, 1.7, 2.0 ** -9):
            add(f"rescale_i32_{rounding}_{real:g}", lambda n, rounding=rounding, real=real:
                (lambda x: n.finish(n.rescale(x, I8, real / 40, per_channel=False, rounding=rounding)))(n.input((1, 9, 8, 19), I32)))
    return cases
