// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/shader_invocation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/narrow_float.h"
#include "formats/spirv/compute/check_shader.h"

namespace tosaic::spirv {
namespace {

constexpr int by_an_ulp = 1, division_ulps = 3, root_ulps = 3;
int power_ulps(float x) { return 3 + 2 * static_cast<int>(std::min(std::fabs(x), 150.0f)); }

Word dot_of_int8(Word a, Word b) {
  std::int32_t sum = 0;
  for (Word shift = 0; shift < 32; shift += 8)
    sum += std::int32_t{static_cast<std::int8_t>(a >> shift)} * static_cast<std::int8_t>(b >> shift);
  return static_cast<Word>(sum);
}

}  // namespace

ShaderInvocation::ShaderInvocation(const ShaderProgram& program, const ShaderCall& call, const ShaderProgram::Run& run,
                                   std::vector<Word>& shared, std::uint64_t& left)
    : program_(program), call_(call), run_(run), shared_(shared), left_(left), r_(program.first_) {
  for (std::size_t i = 0; i < std::min<std::size_t>(call.pushes.size(), push_words); ++i)
    r_[program.pushes_at_ + i] = call.pushes[i];
  r_[program.invocation_at_] = run.group[0] * program.group_size_ + run.local;
  r_[program.invocation_at_ + 1] = run.group[1];
  r_[program.invocation_at_ + 2] = run.group[2];
  r_[program.local_at_] = run.local;
  for (Word i = 0; i < 3; ++i) r_[program.group_at_ + i] = run.group[i];
  r_[program.subgroup_at_] = run.local / matrix_sharers;
}

ShaderInvocation::State ShaderInvocation::advance() {
  for (;; ++done_) {
    if (left_ == 0) undefined_ = true;
    if (undefined_) return State::undefined;
    --left_;
    const Step& s = program_.steps_[next_++];
    if (s.op == Opcode::branch)
      next_ = s.a;
    else if (s.op == Opcode::branch_conditional)
      next_ = r_[s.a] ? s.b : s.c;
    else if (s.op == Opcode::return_)
      return State::returned;
    else if (s.op == Opcode::group_non_uniform_shuffle)
      return State::shuffles;
    else if (s.op == Opcode::cooperative_matrix_mul_add)
      return State::multiplies;
    else if (s.op == Opcode::control_barrier)
      return State::waits;
    else
      step(s);
  }
}

void ShaderInvocation::take_sum(Word i, double value, double size) {
  done_ += i == 0 ? matrix_side : 0;
  if (of_integers()) {  // exact: far below 2^53
    r_[last().to + i] = static_cast<Word>(static_cast<std::int64_t>(value));
    return;
  }
  if (run_.noise) value += (static_cast<double>((*run_.noise)() % 2001) / 1000 - 1) * size * 0x1p-22;
  set(last().to + i, static_cast<float>(value));
}

void ShaderInvocation::set_rounded(Word at, float value, int ulps) {
  Word bits = std::bit_cast<Word>(value);
  const Word size = bits & 0x7fffffff;
  if (run_.noise && size > 0x00800010 && size < 0x7f7ffff0)
    bits += static_cast<Word>(static_cast<int>((*run_.noise)() % static_cast<Word>(2 * ulps + 1))) -
            static_cast<Word>(ulps);
  r_[at] = bits;
}

void ShaderInvocation::step(const Step& s) {
  const Word a = r_[s.a], b = r_[s.b];
  switch (s.op) {
    case Opcode::load:
      if (s.function == storage_buffer) return load(s);
      if (s.function == storage_shared) {
        const Word at = shared_place(a, s.b);
        if (!undefined_) std::memcpy(&r_[s.to], &shared_[at], s.b * sizeof(Word));
        return;
      }
      std::memmove(&r_[s.to], &r_[s.a], s.b * sizeof(Word));
      return;
    case Opcode::store:
      if (s.function != storage_shared) return store(s);
      if (const Word at = shared_place(r_[s.to], s.b); !undefined_)
        std::memcpy(&shared_[at], &r_[s.a], s.b * sizeof(Word));
      return;
    case Opcode::access_chain: r_[s.to] = s.function + a * s.c + b; return;
    case Opcode::image_fetch: return fetch(s);
    case Opcode::cooperative_matrix_load: return share_matrix(s, false);
    case Opcode::cooperative_matrix_store: return share_matrix(s, true);
    case Opcode::ext_inst: return call(s);
    case Opcode::u_convert:
    case Opcode::s_convert: return convert(s);
    case Opcode::bitcast: r_[s.to] = a; return;
    case Opcode::convert_f_to_s: r_[s.to] = to_whole(real(s.a)); return;
    case Opcode::convert_s_to_f:
    case Opcode::convert_u_to_f: return from_whole(s);
    case Opcode::s_negate: r_[s.to] = 0 - a; return;
    case Opcode::bit_not: r_[s.to] = ~a; return;
    case Opcode::f_negate: r_[s.to] = a ^ 0x80000000; return;
    case Opcode::logical_not: r_[s.to] = !a; return;
    case Opcode::f_add: return set_rounded(s.to, real(s.a) + real(s.b), by_an_ulp);
    case Opcode::f_sub: return set_rounded(s.to, real(s.a) - real(s.b), by_an_ulp);
    case Opcode::f_mul: return set_rounded(s.to, real(s.a) * real(s.b), by_an_ulp);
    case Opcode::f_div: return set_rounded(s.to, real(s.a) / real(s.b), division_ulps);
    case Opcode::i_add: r_[s.to] = a + b; return;
    case Opcode::i_sub: r_[s.to] = a - b; return;
    case Opcode::i_mul: r_[s.to] = a * b; return;
    case Opcode::u_div:
    case Opcode::u_mod:
    case Opcode::s_div: r_[s.to] = quotient(s); return;
    case Opcode::u_mul_extended:
    case Opcode::s_mul_extended: return product(s);
    case Opcode::s_dot: r_[s.to] = dot_of_int8(a, b); return;
    case Opcode::select: r_[s.to] = a ? b : r_[s.c]; return;
    case Opcode::shift_left_logical:
    case Opcode::shift_right_logical:
    case Opcode::shift_right_arithmetic: r_[s.to] = shifted(s); return;
    case Opcode::bitwise_or:
    case Opcode::logical_or: r_[s.to] = a | b; return;
    case Opcode::bitwise_and:
    case Opcode::logical_and: r_[s.to] = a & b; return;
    case Opcode::bitwise_xor: r_[s.to] = a ^ b; return;
    default: r_[s.to] = compared(s); return;
  }
}

// The element's bytes; null: it lies outside.
std::byte* ShaderInvocation::element(Word binding, std::uint64_t index, Word& bytes) {
  bytes = program_.bindings_[binding].element_bytes;
  const auto& memory = call_.bindings[binding];
  const std::uint64_t at = index * bytes;
  undefined_ |= at + bytes > memory.size();
  return undefined_ ? nullptr : memory.data() + at;
}
// The first of so many words of shared memory; 0 where they lie outside.
Word ShaderInvocation::shared_place(Word at, Word words) {
  undefined_ |= at >= shared_.size() || words > shared_.size() - at;
  return undefined_ ? 0 : at;
}
// Four elements in two words.
bool ShaderInvocation::is_f16_matrix(Word binding) const {
  return program_.bindings_[binding].element_bytes == 2 && program_.bindings_[binding].lanes >= 4;
}

void ShaderInvocation::load(const Step& s) {
  const Word lanes = program_.bindings_[s.a].lanes, at = r_[s.b];
  const bool halves = is_f16_matrix(s.a);
  for (Word i = 0; i < lanes; ++i) {
    Word bytes = 0, value = 0;
    if (const std::byte* from = element(s.a, std::uint64_t{at} * lanes + i, bytes)) std::memcpy(&value, from, bytes);
    if (!halves)
      r_[s.to + i] = value;
    else
      r_[s.to + i / 2] = i % 2 ? r_[s.to + i / 2] | value << 16 : value;
  }
}
void ShaderInvocation::store(const Step& s) {
  const Word lanes = program_.bindings_[s.to].lanes;
  for (Word i = 0; i < lanes; ++i) {
    ShaderWrite w{s.to, 4, std::uint64_t{r_[s.b]} * lanes + i};
    std::byte* const to = element(s.to, w.index, w.element_bytes);
    if (!to) return;
    std::memcpy(&w.before, to, w.element_bytes);
    const Word value = is_f16_matrix(s.to) ? r_[s.a + i / 2] >> 16 * (i % 2) : r_[s.a + i];
    std::memcpy(to, &value, w.element_bytes);
    std::memcpy(&w.after, to, w.element_bytes);
    writes_.push_back(w);
  }
}
// Components that the format lacks are 0, 0, 1. What lies outside is the device's.
void ShaderInvocation::fetch(const Step& s) {
  const Word texel = call_.texel_bytes[s.a], bytes = std::min<Word>(texel, 4);
  const auto& memory = call_.bindings[s.a];
  const std::uint64_t at = std::uint64_t{r_[s.b]} * texel;
  undefined_ |= at + texel > memory.size();
  if (undefined_) return;
  for (Word i = 0; i < 4; ++i) {
    Word value = i < 3 ? 0 : program_.bindings_[s.a].real ? 0x3f800000 : 1;
    if (i * bytes < texel) std::memcpy(&(value = 0), memory.data() + at + i * bytes, bytes);
    r_[s.to + i] = value;
  }
}

// This invocation's part of a matrix in shared memory.
void ShaderInvocation::share_matrix(const Step& s, bool stores) {
  const ShaderProgram::SharedMatrix& m = program_.shared_matrices_[s.b];
  const Word per_word = 32 / m.bits, first = run_.local % matrix_sharers * m.shares;
  for (Word i = 0; i < m.shares; ++i) {
    Word row = (first + i) / m.columns, column = (first + i) % m.columns;
    if (m.by_columns) std::swap(row, column);
    const Word place = shared_place(r_[s.a] + row * m.stride + column / per_word, 1);
    if (undefined_) return;
    const Word bits = shared_[place] >> m.bits % 32 * (column % per_word);
    if (stores)
      shared_[place] = r_[s.to + i];
    else if (m.bits == 8)
      r_[s.to + i] = static_cast<Word>(std::int32_t{static_cast<std::int8_t>(bits)});
    else if (m.bits == 16)
      set(s.to + i, half(bits));
    else
      r_[s.to + i] = bits;
  }
}

void ShaderInvocation::convert(const Step& s) {
  const Word unused = 32 - s.function;
  const Word high = r_[s.a] << unused;
  r_[s.to] = s.op == Opcode::u_convert ? high >> unused : static_cast<Word>(static_cast<std::int32_t>(high) >> unused);
}
Word ShaderInvocation::shifted(const Step& s) {
  const Word a = r_[s.a], by = r_[s.b];
  if (by > 31) {
    undefined_ = true;
    return 0;
  }
  return s.op == Opcode::shift_left_logical    ? a << by
         : s.op == Opcode::shift_right_logical ? a >> by
                                               : static_cast<Word>(static_cast<std::int32_t>(a) >> by);
}
Word ShaderInvocation::quotient(const Step& s) {
  const Word a = r_[s.a], b = r_[s.b];
  if (b == 0 || (s.op == Opcode::s_div && a == 0x80000000 && b == 0xffffffff)) {
    undefined_ = true;
    return 0;
  }
  return s.op == Opcode::u_div   ? a / b
         : s.op == Opcode::u_mod ? a % b
                                 : static_cast<Word>(static_cast<std::int32_t>(a) / static_cast<std::int32_t>(b));
}
Word ShaderInvocation::to_whole(float x) {
  if (!(x >= -2147483648.0f && x < 2147483648.0f)) {
    undefined_ = true;
    return 0;
  }
  return static_cast<Word>(static_cast<std::int32_t>(x));
}
void ShaderInvocation::from_whole(const Step& s) {
  const double exact = s.op == Opcode::convert_s_to_f ? static_cast<double>(whole(s.a)) : static_cast<double>(r_[s.a]);
  const auto value = static_cast<float>(exact);
  set_rounded(s.to, value, static_cast<double>(value) == exact ? 0 : by_an_ulp);
}

void ShaderInvocation::product(const Step& s) {
  const auto a = r_[s.a], b = r_[s.b];
  const auto all = s.op == Opcode::u_mul_extended
                       ? std::uint64_t{a} * b
                       : static_cast<std::uint64_t>(std::int64_t{whole(s.a)} * std::int64_t{whole(s.b)});
  r_[s.to] = static_cast<Word>(all);
  r_[s.to + 1] = static_cast<Word>(all >> 32);
}
// A device may take f16 numbers that are not normal as zero.
float ShaderInvocation::half(Word bits) {
  const auto code = static_cast<std::uint16_t>(bits);
  const bool tiny = (code & 0x7c00) == 0;
  if (tiny && run_.noise && (*run_.noise)() % 4 < 2) return 0;
  return static_cast<float>(Half::from_bits(code));
}

// To either matrix_side: which one is the device's.
Word ShaderInvocation::packed_half(Word at) {
  const Word bits = Half(real(at)).bits, size = bits & 0x7fff;
  const bool moves = run_.noise && size > 0x400 && size < 0x7bff;
  return moves ? bits + (*run_.noise)() % 3 - 1 : bits;
}

void ShaderInvocation::call(const Step& s) {
  const float x = real(s.a);
  switch (static_cast<Function>(s.function)) {
    case Function::round_even: return set(s.to, std::nearbyintf(x));
    case Function::trunc: return set(s.to, std::truncf(x));
    case Function::abs: return set(s.to, std::fabs(x));
    case Function::floor: return set(s.to, std::floor(x));
    case Function::ceil: return set(s.to, std::ceil(x));
    case Function::exp2: return set_rounded(s.to, std::exp2(x), power_ulps(x));
    case Function::sqrt: return set_rounded(s.to, std::sqrt(x), root_ulps);
    case Function::inverse_sqrt: return set_rounded(s.to, 1 / std::sqrt(x), root_ulps);
    case Function::umin: r_[s.to] = std::min(r_[s.a], r_[s.b]); return;
    case Function::smin: r_[s.to] = static_cast<Word>(std::min(whole(s.a), whole(s.b))); return;
    case Function::smax: r_[s.to] = static_cast<Word>(std::max(whole(s.a), whole(s.b))); return;
    case Function::fma: return set_rounded(s.to, std::fmaf(x, real(s.b), real(s.c)), by_an_ulp);
    case Function::pack_half_2x16: r_[s.to] = packed_half(s.a) | packed_half(s.a + 1) << 16; return;
    case Function::unpack_half_2x16: set(s.to, half(r_[s.a] & 0xffff)); return set(s.to + 1, half(r_[s.a] >> 16));
    case Function::highest_bit: r_[s.to] = r_[s.a] ? static_cast<Word>(31 - std::countl_zero(r_[s.a])) : ~0u; return;
    default: undefined_ = true;
  }
}

bool ShaderInvocation::compared(const Step& s) const {
  const Word a = r_[s.a], b = r_[s.b];
  switch (s.op) {
    case Opcode::i_equal:
    case Opcode::logical_equal: return a == b;
    case Opcode::i_not_equal:
    case Opcode::logical_not_equal: return a != b;
    case Opcode::s_greater_than: return whole(s.a) > whole(s.b);
    case Opcode::s_greater_than_equal: return whole(s.a) >= whole(s.b);
    case Opcode::s_less_than: return whole(s.a) < whole(s.b);
    case Opcode::s_less_than_equal: return whole(s.a) <= whole(s.b);
    case Opcode::u_less_than: return a < b;
    case Opcode::f_ord_equal: return real(s.a) == real(s.b);
    case Opcode::f_ord_less_than: return real(s.a) < real(s.b);
    case Opcode::f_ord_greater_than: return real(s.a) > real(s.b);
    case Opcode::f_ord_less_than_equal: return real(s.a) <= real(s.b);
    default: return real(s.a) >= real(s.b);
  }
}

}  // namespace tosaic::spirv
