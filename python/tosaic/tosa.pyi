# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

from torch import Tensor, dtype

def op(name: str, *operands: object, **attributes: object) -> Tensor | tuple[Tensor, ...]: ...
def abs(input1: Tensor) -> Tensor:
    """the magnitude of each element"""
def add(input1: Tensor, input2: Tensor) -> Tensor:
    """a + b, with broadcasting"""
def argmax(input: Tensor, *, axis: int, nan_mode: str = 'propagate') -> Tensor:
    """the index of the largest element along an axis"""
def arithmetic_right_shift(input1: Tensor, input2: Tensor, *, round: bool) -> Tensor:
    """a shifted right by b bits, copies of the sign shifted in"""
def avg_pool2d(input: Tensor, input_zp: Tensor | float | Sequence[float], output_zp: Tensor | float | Sequence[float], *, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int], acc_type: dtype) -> Tensor:
    """the mean of each window of an NHWC tensor, padding left out"""
def bitwise_and(input1: Tensor, input2: Tensor) -> Tensor:
    """the bits set in both, with broadcasting"""
def bitwise_not(input1: Tensor) -> Tensor:
    """every bit of each element inverted"""
def bitwise_or(input1: Tensor, input2: Tensor) -> Tensor:
    """the bits set in either, with broadcasting"""
def bitwise_xor(input1: Tensor, input2: Tensor) -> Tensor:
    """the bits set in exactly one, with broadcasting"""
def cast(input: Tensor, *, result: dtype | None = None) -> Tensor:
    """the same values in another dtype"""
def ceil(input1: Tensor) -> Tensor:
    """each element rounded up to an integral value"""
def clamp(input: Tensor, *, min_val: float, max_val: float, nan_mode: str = 'propagate') -> Tensor:
    """each element held between two bounds"""
def clz(input1: Tensor) -> Tensor:
    """the number of leading zero bits of each element"""
def concat(input1: Sequence[Tensor], *, axis: int) -> Tensor:
    """tensors concatenated along an axis"""
def conv2d(input: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor | float | Sequence[float], weight_zp: Tensor | float | Sequence[float], *, pad: Sequence[int], stride: Sequence[int], dilation: Sequence[int], acc_type: dtype, local_bound: bool) -> Tensor:
    """2-D convolution of NHWC by OHWI weights, plus bias"""
def conv3d(input: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor | float | Sequence[float], weight_zp: Tensor | float | Sequence[float], *, pad: Sequence[int], stride: Sequence[int], dilation: Sequence[int], acc_type: dtype, local_bound: bool) -> Tensor:
    """3-D convolution of NDHWC by ODHWI weights, plus bias"""
def cos(input1: Tensor) -> Tensor:
    """the cosine of each element"""
def depthwise_conv2d(input: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor | float | Sequence[float], weight_zp: Tensor | float | Sequence[float], *, pad: Sequence[int], stride: Sequence[int], dilation: Sequence[int], acc_type: dtype, local_bound: bool) -> Tensor:
    """2-D convolution of each channel by its own HWCM weights, plus bias"""
def equal(input1: Tensor, input2: Tensor) -> Tensor:
    """true where a equals b, with broadcasting; false for NaN"""
def erf(input: Tensor) -> Tensor:
    """the error function, element by element"""
def exp(input1: Tensor) -> Tensor:
    """e to the power of each element"""
def fft2d(input_real: Tensor, input_imag: Tensor, *, inverse: bool, local_bound: bool) -> tuple[Tensor, Tensor]:
    """the 2-D Fourier transform of complex planes, or its inverse without the division"""
def floor(input1: Tensor) -> Tensor:
    """each element rounded down to an integral value"""
def gather(values: Tensor, indices: Tensor) -> Tensor:
    """picks rows of each batch by index"""
def greater(input1: Tensor, input2: Tensor) -> Tensor:
    """true where a is greater than b, with broadcasting; false for NaN"""
def greater_equal(input1: Tensor, input2: Tensor) -> Tensor:
    """true where a is at least b, with broadcasting; false for NaN"""
def identity(input1: Tensor) -> Tensor:
    """the operand itself"""
def intdiv(input1: Tensor, input2: Tensor) -> Tensor:
    """a / b truncated towards zero, with broadcasting"""
def log(input1: Tensor) -> Tensor:
    """the natural logarithm of each element"""
def logical_and(input1: Tensor, input2: Tensor) -> Tensor:
    """true where both are, with broadcasting"""
def logical_left_shift(input1: Tensor, input2: Tensor) -> Tensor:
    """a shifted left by b bits, zeros shifted in"""
def logical_not(input1: Tensor) -> Tensor:
    """true where the element is false"""
def logical_or(input1: Tensor, input2: Tensor) -> Tensor:
    """true where either is, with broadcasting"""
def logical_right_shift(input1: Tensor, input2: Tensor) -> Tensor:
    """a, taken as unsigned, shifted right by b bits"""
def logical_xor(input1: Tensor, input2: Tensor) -> Tensor:
    """true where exactly one is, with broadcasting"""
def matmul(A: Tensor, B: Tensor, A_zp: Tensor | float | Sequence[float], B_zp: Tensor | float | Sequence[float], *, result: dtype | None = None) -> Tensor:
    """the product of each matrix of A with the same matrix of B"""
def max_pool2d(input: Tensor, *, kernel: Sequence[int], stride: Sequence[int], pad: Sequence[int], nan_mode: str = 'propagate') -> Tensor:
    """the largest element of each window of an NHWC tensor"""
def maximum(input1: Tensor, input2: Tensor, *, nan_mode: str = 'propagate') -> Tensor:
    """the larger of a and b, with broadcasting"""
def minimum(input1: Tensor, input2: Tensor, *, nan_mode: str = 'propagate') -> Tensor:
    """the smaller of a and b, with broadcasting"""
def mul(input1: Tensor, input2: Tensor, shift: Tensor | float | Sequence[float]) -> Tensor:
    """a * b, with broadcasting; i32 products may be shifted right"""
def negate(input1: Tensor, input1_zp: Tensor | float | Sequence[float], output_zp: Tensor | float | Sequence[float]) -> Tensor:
    """-x, element by element; i8 with zero points"""
def pad(input1: Tensor, padding: Sequence[int], pad_const: Tensor | float | Sequence[float]) -> Tensor:
    """a tensor padded with one value"""
def pow(input1: Tensor, input2: Tensor) -> Tensor:
    """a to the power of b, with broadcasting"""
def reciprocal(input1: Tensor) -> Tensor:
    """1 / x, element by element"""
def reduce_all(input: Tensor, *, axis: int) -> Tensor:
    """true where all elements along an axis are"""
def reduce_any(input: Tensor, *, axis: int) -> Tensor:
    """true where any element along an axis is"""
def reduce_max(input: Tensor, *, axis: int, nan_mode: str = 'propagate') -> Tensor:
    """the largest of the elements along an axis"""
def reduce_min(input: Tensor, *, axis: int, nan_mode: str = 'propagate') -> Tensor:
    """the smallest of the elements along an axis"""
def reduce_product(input: Tensor, *, axis: int) -> Tensor:
    """the product of the elements along an axis"""
def reduce_sum(input: Tensor, *, axis: int) -> Tensor:
    """the sum of the elements along an axis"""
def rescale(input: Tensor, multiplier: Tensor | float | Sequence[float], shift: Tensor | float | Sequence[float], input_zp: Tensor | float | Sequence[float], output_zp: Tensor | float | Sequence[float], *, scale32: bool, rounding_mode: str, per_channel: bool, input_unsigned: bool, output_unsigned: bool, result: dtype | None = None) -> Tensor:
    """changes scale, zero point and dtype of integers: clip((x - input_zp) * multiplier >> shift) + output_zp)"""
def reshape(input1: Tensor, shape: Sequence[int]) -> Tensor:
    """the same elements in another shape"""
def resize(input: Tensor, scale: Sequence[int], offset: Sequence[int], border: Sequence[int], *, mode: str, result: dtype | None = None) -> Tensor:
    """scales the image axes of an NHWC tensor by nearest or bilinear sampling"""
def reverse(input1: Tensor, *, axis: int) -> Tensor:
    """the order of elements along an axis reversed"""
def rfft2d(input_real: Tensor, *, local_bound: bool) -> tuple[Tensor, Tensor]:
    """the 2-D Fourier transform of real planes, the half that is not redundant"""
def rsqrt(input1: Tensor) -> Tensor:
    """1 / sqrt(x), element by element; NaN below zero"""
def scatter(values_in: Tensor, indices: Tensor, input: Tensor) -> Tensor:
    """puts rows into each batch by index, each index at most once"""
def select(input1: Tensor, input2: Tensor, input3: Tensor) -> Tensor:
    """a where the condition is true, b elsewhere, with broadcasting"""
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), element by element"""
def sin(input1: Tensor) -> Tensor:
    """the sine of each element"""
def slice(input1: Tensor, start: Sequence[int], size: Sequence[int]) -> Tensor:
    """a box cut out of a tensor"""
def sub(input1: Tensor, input2: Tensor) -> Tensor:
    """a - b, with broadcasting"""
def table(input1: Tensor, table: Tensor | float | Sequence[float]) -> Tensor:
    """looks each element up: i8 in 256 entries; i16 in 513, interpolated to a 16.7 fixed-point i32"""
def tanh(input: Tensor) -> Tensor:
    """the hyperbolic tangent, element by element"""
def tile(input1: Tensor, multiples: Sequence[int]) -> Tensor:
    """a tensor repeated along its dims"""
def transpose(input1: Tensor, *, perms: Sequence[int]) -> Tensor:
    """the dims of a tensor in another order"""
def transpose_conv2d(input: Tensor, weight: Tensor, bias: Tensor, input_zp: Tensor | float | Sequence[float], weight_zp: Tensor | float | Sequence[float], *, out_pad: Sequence[int], stride: Sequence[int], acc_type: dtype, local_bound: bool) -> Tensor:
    """2-D transposed convolution of NHWC by OHWI weights, plus bias"""
