// SPDX-License-Identifier: Apache-2.0
// Matrices of subgroups, as check_shader holds them to what our shaders have, which are read from shared memory and
// written there: f16, 16 x 16, and reals as their sums; or 8-bit integers, 32 deep, and words as theirs. Every row
// of one is known to lie inside: no driver checks it. Rows or columns may all be read from one place.
#pragma once
#include "formats/spirv/compute/check_preamble.h"

namespace tosaic::spirv {

class CheckedMatrices : protected CheckedPreamble {
 protected:
  using CheckedPreamble::CheckedPreamble;

  static bool is_of_matrices(Opcode opcode);
  Type matrix_type(std::span<const Word> operands) const;
  // Behind an element of shared memory so many more are known to lie.
  void known_place(Id pointer, Word behind) { behind_[pointer] = behind; }
  void load_matrix(const Instruction& i);
  void store_matrix(const Instruction& i) const;
  void multiply_add(const Instruction& i);
  void multiplied_matrices(const Instruction& i);  // of sums, element by element
  void filled_matrix(const Instruction& i);

 private:
  bool is_of_integers(const Type& matrix) const { return type(matrix.of[0]).kind == Type::integer; }
  void place(Id pointer, Id matrix, Id layout, Id stride, bool reads) const;
  std::map<Id, Word> behind_;
};

}  // namespace tosaic::spirv
