// SPDX-License-Identifier: Apache-2.0
// The types, constants and variables of a shader, as check_shader holds them to what our shaders have.
#pragma once
#include "formats/spirv/compute/check_matrices.h"
#include "formats/spirv/compute/word_bounds.h"

namespace tosaic::spirv {

class CheckedGlobals : protected CheckedMatrices {
 protected:
  using CheckedMatrices::CheckedMatrices;

  void globals();

  std::set<Id> read_only_;     // buffers, and pointers into them
  std::map<Word, Id> inputs_;  // by what they are
  WordBounds bounds_;

 private:
  bool is_stored(Id t) const;
  void add_type(Id id, Type made);
  void image(std::span<const Word> o);
  void structure(std::span<const Word> o);
  void pointer(std::span<const Word> o);
  void variable(std::span<const Word> o);
  void bind(Id variable, ShaderBinding made);
  void input(Id id);
};

}  // namespace tosaic::spirv
