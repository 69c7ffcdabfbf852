// SPDX-License-Identifier: Apache-2.0
// The shares of a row, as REDUCE_MAX, SUB, EXP, REDUCE_SUM, RECIPROCAL and MUL make them: one row an invocation.
#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Sizes { int rows, columns; };
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };

void main() {
  int row = int(gl_GlobalInvocationID.x), begin = row * columns;
  if (row >= rows) return;
  float most = x[begin], sum = 0;
  for (int i = 1; i < columns; ++i) most = max(most, x[begin + i]);
  for (int i = 0; i < columns; ++i) sum += exp(x[begin + i] - most);
  for (int i = 0; i < columns; ++i) y[begin + i] = exp(x[begin + i] - most) / sum;
}
