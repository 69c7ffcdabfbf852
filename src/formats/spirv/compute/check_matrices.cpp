// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/check_matrices.h"

#include <utility>

namespace tosaic::spirv {
namespace {

constexpr Word vector_bytes = 16;
constexpr auto left = static_cast<Word>(MatrixUse::left), right = static_cast<Word>(MatrixUse::right),
               sum = static_cast<Word>(MatrixUse::sum);

}  // namespace

bool CheckedMatrices::is_of_matrices(Opcode opcode) {
  return opcode == Opcode::cooperative_matrix_load || opcode == Opcode::cooperative_matrix_store ||
         opcode == Opcode::cooperative_matrix_mul_add;
}

Type CheckedMatrices::matrix_type(std::span<const Word> o) const {
  need(o.size() == 6 && is_constant(o[2], scope_subgroup), "a matrix of another size");
  for (const Word use : {left, right, sum}) {
    const bool halves = is(o[1], Type::real, use == sum ? 32 : 16),
               integers = result_.int8_matrices && is(o[1], Type::integer, use == sum ? 32 : 8);
    if (!is_constant(o[5], use) || (!halves && !integers)) continue;
    const MatrixSize size = matrix_size(static_cast<MatrixUse>(use), integers);
    need(is_constant(o[3], size.rows) && is_constant(o[4], size.columns), "a matrix of another size");
    return {Type::matrix, use, {o[1]}};
  }
  wrong("a matrix for something else");
}

// From an element of shared memory on, which is a vector of four words.
void CheckedMatrices::place(Id pointer, Id matrix, Id layout, Id stride, bool reads) const {
  const Type& whole = type(matrix);
  const auto behind = behind_.find(pointer);
  need(whole.kind == Type::matrix && behind != behind_.end() && bytes_of(type(type_of(pointer)).of[0]) == vector_bytes,
       "a matrix somewhere else than in shared vectors");
  need(is_constant(layout, matrix_by_rows) || is_constant(layout, matrix_by_columns), "a matrix that lies otherwise");
  const auto apart = constants_.find(stride);
  MatrixSize size = matrix_size(static_cast<MatrixUse>(whole.size), is_of_integers(whole));
  if (is_constant(layout, matrix_by_columns)) std::swap(size.rows, size.columns);
  const Word of_row = size.columns * bytes_of(whole.of[0]) / vector_bytes;
  need(apart != constants_.end(), "rows of a matrix that lie somewhere");
  const bool once = reads && apart->second == 0;
  need((once || apart->second >= of_row) && apart->second <= behind->second,
       "rows of a matrix that lie in each other, or may lie outside");
  need((size.rows - 1) * apart->second + of_row - 1 <= behind->second, "a matrix that may lie outside");
}

void CheckedMatrices::load_matrix(const Instruction& i) {
  need(i.operands.size() == 5, "an instruction of another length");
  place(i.operands[2], i.operands[0], i.operands[3], i.operands[4], true);
  define(i.operands[1], i.operands[0]);
}

void CheckedMatrices::store_matrix(const Instruction& i) const {
  need(i.operands.size() == 4, "an instruction of another length");
  const Id stored = type_of(i.operands[1]);
  need(is(stored, Type::matrix, sum), "a factor that is stored");
  place(i.operands[0], stored, i.operands[2], i.operands[3], false);
}

void CheckedMatrices::multiply_add(const Instruction& i) {
  need(i.operands.size() >= 5, "an instruction of another length");
  const Id result = i.operands[0];
  need(is(result, Type::matrix) && type(result).size == sum && type_of(i.operands[4]) == result,
       "a sum of matrices of another type");
  const bool integers = is_of_integers(type(result));
  need(integers ? i.operands.size() == 6 && i.operands[5] == all_matrices_signed : i.operands.size() == 5,
       "numbers that are signed otherwise");
  for (const Word use : {left, right}) {
    const Id factor = type_of(i.operands[use == left ? 2 : 3]);
    need(is(factor, Type::matrix) && type(factor).size == use && is_of_integers(type(factor)) == integers,
         "an operand of another type");
  }
  define(i.operands[1], result);
}

void CheckedMatrices::multiplied_matrices(const Instruction& i) {
  const Id result = i.operands[0];
  const bool known = is_of_integers(type(result)) ? i.opcode == Opcode::i_mul || i.opcode == Opcode::i_add
                                                  : i.opcode == Opcode::f_mul || i.opcode == Opcode::f_add;
  need(known && type(result).size == sum && type_of(i.operands[2]) == result && type_of(i.operands[3]) == result,
       "matrices that are computed otherwise");
  define(i.operands[1], result);
}

void CheckedMatrices::filled_matrix(const Instruction& i) {
  need(i.operands.size() == 3 && type_of(i.operands[2]) == type(i.operands[0]).of[0], "a matrix of something else");
  define(i.operands[1], i.operands[0]);
}

}  // namespace tosaic::spirv
