// SPDX-License-Identifier: Apache-2.0
// MATMUL of f32: one element an invocation.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Sizes { int rows, columns, length; };
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) readonly buffer B { float b[]; };
layout(binding = 2) writeonly buffer Y { float y[]; };

void main() {
  int i = int(gl_GlobalInvocationID.x), column = i % columns, row = i / columns % rows, batch = i / columns / rows;
  if (i >= y.length()) return;
  float sum = 0;
  for (int j = 0; j < length; ++j) sum += a[(batch * rows + row) * length + j] * b[(batch * length + j) * columns + column];
  y[i] = sum;
}
