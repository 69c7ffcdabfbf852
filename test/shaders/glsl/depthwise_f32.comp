// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV2D of f32 with one multiplier and a bias: one output element an invocation, by the definition.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Sizes { int h, w, c, oh, ow, kh, kw, stride_y, stride_x, top, left; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weights { float k[]; };
layout(binding = 2) readonly buffer Bias { float b[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x), j = i % c, ox = i / c % ow, oy = i / c / ow % oh, n = i / c / ow / oh;
  if (i >= y.length()) return;
  float sum = b[j];
  for (int ky = 0; ky < kh; ++ky)
    for (int kx = 0; kx < kw; ++kx) {
      int iy = oy * stride_y + ky - top, ix = ox * stride_x + kx - left;
      if (iy >= 0 && ix >= 0 && iy < h && ix < w) sum += x[((n * h + iy) * w + ix) * c + j] * k[(ky * kw + kx) * c + j];
    }
  y[i] = sum;
}
