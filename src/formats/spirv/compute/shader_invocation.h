// SPDX-License-Identifier: Apache-2.0
// One invocation of a shader: its registers, and what each instruction makes of them. Those of its group are other
// objects: it stops where it needs them.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "formats/spirv/compute/run_shader.h"

namespace tosaic::spirv {

class ShaderInvocation {
 public:
  // `shared`: the group's memory. `left`: how many instructions there may still be, of all that run with it.
  ShaderInvocation(const ShaderProgram& program, const ShaderCall& call, const ShaderProgram::Run& run,
                   std::vector<Word>& shared, std::uint64_t& left);

  enum class State : std::uint8_t { returned, shuffles, multiplies, waits, undefined };

  // Up to its end, to a shuffle, to a product of matrices or to a barrier.
  State advance();
  std::size_t place() const { return next_; }

  // At a shuffle: what it gives the others, whose it takes, and what it then has.
  Word given() const { return r_[last().a]; }
  Word wanted() const { return r_[last().b]; }
  void take(Word value) { r_[last().to] = value; }

  // At a product of matrices: whether it is of integers, and its elements of the factors and of the sum.
  bool of_integers() const { return last().function != 0; }
  double left(Word i) const { return number(last().a + i); }
  double right(Word i) const { return number(last().b + i); }
  double sum(Word i) const { return number(last().c + i); }
  // What the sum becomes: devices add floats in an order and a precision of their own; `size`: of the terms together.
  void take_sum(Word i, double value, double size);

  const std::vector<ShaderWrite>& writes() const { return writes_; }
  std::uint64_t done() const { return done_; }

 private:
  using Step = ShaderProgram::Step;
  const Step& last() const { return program_.steps_[next_ - 1]; }

  float real(Word at) const { return std::bit_cast<float>(r_[at]); }
  std::int32_t whole(Word at) const { return static_cast<std::int32_t>(r_[at]); }
  double number(Word at) const { return of_integers() ? whole(at) : double{real(at)}; }
  void set(Word at, float value) { r_[at] = std::bit_cast<Word>(value); }
  void set_rounded(Word at, float value, int ulps);

  void step(const Step& s);
  // Memory.
  std::byte* element(Word binding, std::uint64_t index, Word& bytes);
  Word shared_place(Word at, Word words);
  bool is_f16_matrix(Word binding) const;
  void load(const Step& s);
  void store(const Step& s);
  void fetch(const Step& s);
  void share_matrix(const Step& s, bool stores);
  // Arithmetic.
  void convert(const Step& s);
  Word shifted(const Step& s);
  Word quotient(const Step& s);
  Word to_whole(float x);
  void from_whole(const Step& s);
  void product(const Step& s);
  float half(Word bits);
  Word packed_half(Word at);
  void call(const Step& s);
  bool compared(const Step& s) const;

  const ShaderProgram& program_;
  const ShaderCall& call_;
  const ShaderProgram::Run& run_;
  std::vector<Word>& shared_;
  std::uint64_t& left_;
  std::vector<Word> r_;
  std::vector<ShaderWrite> writes_;
  std::size_t next_ = 0;
  std::uint64_t done_ = 0;
  bool undefined_ = false;
};

}  // namespace tosaic::spirv
