// SPDX-License-Identifier: Apache-2.0
// CONV2D of f32 with bias and CLAMP to [0, 6]: one output element an invocation, by the definition.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Sizes { int h, w, ci, oh, ow, co, kh, kw, stride_y, stride_x, top, left; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer Weights { float k[]; };
layout(binding = 2) readonly buffer Bias { float b[]; };
layout(binding = 3) writeonly buffer Y { float y[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x), c = i % co, ox = i / co % ow, oy = i / co / ow % oh, n = i / co / ow / oh;
  if (i >= y.length()) return;
  float sum = b[c];
  for (int ky = 0; ky < kh; ++ky)
    for (int kx = 0; kx < kw; ++kx) {
      int iy = oy * stride_y + ky - top, ix = ox * stride_x + kx - left;
      if (iy < 0 || ix < 0 || iy >= h || ix >= w) continue;
      for (int j = 0; j < ci; ++j) sum += x[((n * h + iy) * w + ix) * ci + j] * k[((c * kh + ky) * kw + kx) * ci + j];
    }
  y[i] = clamp(sum, 0.0, 6.0);
}
