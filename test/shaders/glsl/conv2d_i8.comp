// SPDX-License-Identifier: Apache-2.0
// CONV2D of i8 with zero points and bias, then RESCALE of each channel to i8 with one rounding: four output elements, a
// word, an invocation. Products of 64 bits are pairs of words.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Sizes {
  int h, w, ci, oh, ow, co, kh, kw, stride_y, stride_x, top, left, x_zero, k_zero, y_zero, elements;
};
layout(binding = 0) readonly buffer X { int x[]; };
layout(binding = 1) readonly buffer Weights { int k[]; };
layout(binding = 2) readonly buffer Bias { int b[]; };
layout(binding = 3) readonly buffer Multipliers { int multiplier[]; };
layout(binding = 4) readonly buffer Shifts { int shifts[]; };
layout(binding = 5) writeonly buffer Y { int y[]; };

int code(int word, int at) { return bitfieldExtract(word, 8 * (at & 3), 8); }

// (value * by + 2^(shift - 1)) / 2^shift, rounded down, of which the low word is all.
int scaled(int value, int by, int shift) {
  int high, low;
  imulExtended(value, by, high, low);
  uint carry, sum = uaddCarry(uint(low), shift <= 32 ? 1u << (shift - 1) : 0u, carry);
  high += int(carry) + (shift > 32 ? 1 << (shift - 33) : 0);
  return shift == 32 ? high : shift > 32 ? high >> (shift - 32) : int(sum >> shift | uint(high) << (32 - shift));
}

int element(int i) {
  int c = i % co, ox = i / co % ow, oy = i / co / ow % oh, n = i / co / ow / oh, sum = b[c];
  for (int ky = 0; ky < kh; ++ky)
    for (int kx = 0; kx < kw; ++kx) {
      int iy = oy * stride_y + ky - top, ix = ox * stride_x + kx - left;
      if (iy < 0 || ix < 0 || iy >= h || ix >= w) continue;
      for (int j = 0; j < ci; ++j) {
        int at = ((n * h + iy) * w + ix) * ci + j, of = ((c * kh + ky) * kw + kx) * ci + j;
        sum += (code(x[at >> 2], at) - x_zero) * (code(k[of >> 2], of) - k_zero);
      }
    }
  return clamp(scaled(sum, multiplier[c], code(shifts[c >> 2], c)) + y_zero, -128, 127);
}

void main() {
  int i = int(gl_GlobalInvocationID.x), word = 0;
  if (i >= y.length()) return;
  for (int part = 0; part < 4; ++part)
    if (4 * i + part < elements) word |= (element(4 * i + part) & 0xff) << (8 * part);
  y[i] = word;
}
