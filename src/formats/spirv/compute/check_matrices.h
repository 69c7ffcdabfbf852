// SPDX-License-Identifier: Apache-2.0
// Matrices of subgroups, as check_shader holds them to what our shaders have: 16 x 16, halves as factors and reals as
// sums, which are read from shared memory and written there. Every row of one is known to lie inside: no driver checks
// it. Columns of a sum may all be read from one place.
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
  void place(Id pointer, Id matrix, Id layout, Id stride, bool reads) const;
  std::map<Id, Word> behind_;
};

}  // namespace tosaic::spirv
