// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/check_instructions.h"

#include <algorithm>

namespace tosaic::spirv {

void CheckedInstructions::typed(const Instruction& i) {
  using enum Operand;
  const auto op = static_cast<int>(i.opcode);
  const auto among = [op](int first, int last) { return op >= first && op <= last; };
  switch (i.opcode) {
    case Opcode::load: return load(i);
    case Opcode::store: return store(i);
    case Opcode::access_chain: return access(i);
    case Opcode::composite_construct: return construct(i);
    case Opcode::composite_extract: return extract(i);
    case Opcode::image_fetch: return fetch(i);
    case Opcode::group_non_uniform_shuffle: return shuffle(i);
    case Opcode::cooperative_matrix_load: return load_matrix(i);
    case Opcode::cooperative_matrix_store: return store_matrix(i);
    case Opcode::cooperative_matrix_mul_add: return multiply_add(i);
    case Opcode::ext_inst: return glsl(i);
    case Opcode::u_convert:
    case Opcode::s_convert: return convert(i);
    case Opcode::bitcast:
      need(i.operands.size() == 3, "an instruction of another length");
      return is_word(i.operands[0]) ? arithmetic(i, {real}, word) : arithmetic(i, {word}, real);
    case Opcode::convert_f_to_s: return arithmetic(i, {real}, word);
    case Opcode::convert_s_to_f:
    case Opcode::convert_u_to_f: return arithmetic(i, {word}, real);
    case Opcode::s_negate:
    case Opcode::bit_not: return arithmetic(i, {word}, word);
    case Opcode::f_negate: return arithmetic(i, {real}, real);
    case Opcode::logical_not: return arithmetic(i, {boolean_value}, boolean_value);
    case Opcode::f_add:
    case Opcode::f_sub:
    case Opcode::f_mul: return elementwise(i, real);
    case Opcode::f_div: return arithmetic(i, {real, real}, real);
    case Opcode::i_add:
    case Opcode::i_sub:
    case Opcode::i_mul: return elementwise(i, word);
    case Opcode::vector_times_scalar: return scale(i);
    case Opcode::u_div:
    case Opcode::s_div:
    case Opcode::u_mod: return arithmetic(i, {word, word}, word);
    case Opcode::u_mul_extended:
    case Opcode::s_mul_extended: return extended(i);
    case Opcode::select: return select(i);
    case Opcode::s_dot: return dot(i);
    default: break;
  }
  if (among(164, 167)) return arithmetic(i, {boolean_value, boolean_value}, boolean_value);
  if (among(170, 171) || i.opcode == Opcode::s_greater_than || i.opcode == Opcode::s_greater_than_equal ||
      i.opcode == Opcode::u_less_than || i.opcode == Opcode::s_less_than || i.opcode == Opcode::s_less_than_equal)
    return arithmetic(i, {word, word}, boolean_value);
  if (among(180, 190) && op % 2 == 0) return arithmetic(i, {real, real}, boolean_value);
  if (among(194, 199)) return arithmetic(i, {word, word}, word);
  wrong(fmt::format("instruction {}, which our shaders do not have", op));
}

bool CheckedInstructions::matches(Id t, Operand o) const {
  return o == Operand::boolean_value ? is_boolean(t) : o == Operand::word ? is_word(t) : is_real(t);
}
void CheckedInstructions::arithmetic(const Instruction& i, std::initializer_list<Operand> operands, Operand result) {
  need(i.operands.size() == operands.size() + 2, "an instruction of another length");
  std::size_t n = 2;
  for (Operand o : operands) need(matches(type_of(i.operands[n++]), o), "an operand of another type");
  need(matches(i.operands[0], result), "a result of another type");
  define(i.operands[1], i.operands[0]);
}

// Of numbers, or of vectors of one type, part by part.
void CheckedInstructions::elementwise(const Instruction& i, Operand part) {
  need(i.operands.size() == 4, "an instruction of another length");
  const Id t = i.operands[0];
  if (is(t, Type::matrix)) return multiplied_matrices(i);
  if (!is(t, Type::vector)) return arithmetic(i, {part, part}, part);
  need(matches(type(t).of[0], part) && type_of(i.operands[2]) == t && type_of(i.operands[3]) == t,
       "vectors of another type");
  define(i.operands[1], t);
}

void CheckedInstructions::load(const Instruction& i) {
  need(i.operands.size() == 3, "an instruction of another length");
  const Type& p = type(type_of(i.operands[2]));
  need(p.kind == Type::pointer && p.of[0] == i.operands[0] && is_loaded_whole(i.operands[0]), "a load of another type");
  define(i.operands[1], i.operands[0]);
}
void CheckedInstructions::store(const Instruction& i) {
  need(i.operands.size() == 2, "an instruction of another length");
  const Type& p = type(type_of(i.operands[0]));
  need(p.kind == Type::pointer &&
           (p.size == storage_function || p.size == storage_buffer || p.size == storage_shared) &&
           p.of[0] == type_of(i.operands[1]) && is_loaded_whole(p.of[0]) && !read_only_.contains(i.operands[0]),
       "a store of another type, or to what is only read");
}
bool CheckedInstructions::is_loaded_whole(Id t) const { return !is(t, Type::structure) && !is(t, Type::array); }

// An element of a shared array, or a part of one: both indices are known to lie inside.
void CheckedInstructions::access_shared(const Instruction& i, const Type& array) {
  const Type& result = type(i.operands[0]);
  need(result.kind == Type::pointer && result.size == storage_shared, "a pointer of another storage class");
  const auto index = [&](std::size_t n, Word size) {
    need(is_word(type_of(i.operands[n])) && bounds_.highest(i.operands[n]) < size,
         "an index into shared memory that may lie outside");
  };
  index(3, array.size);
  Id element = array.of[0];
  if (i.operands.size() == 5) {
    need(is(element, Type::vector), "a component of a scalar");
    index(4, type(element).size);
    element = type(element).of[0];
  }
  need(result.of[0] == element, "a pointer of another type");
  define(i.operands[1], i.operands[0]);
  if (i.operands.size() == 4) known_place(i.operands[1], array.size - 1 - bounds_.highest(i.operands[3]));
}

void CheckedInstructions::access(const Instruction& i) {
  need(i.operands.size() == 4 || i.operands.size() == 5, "an instruction of another length");
  const Type& base = type(type_of(i.operands[2]));
  if (base.kind == Type::pointer && base.size == storage_shared && is(base.of[0], Type::array))
    return access_shared(i, type(base.of[0]));
  need(i.operands.size() == 5, "an instruction of another length");
  const Type& result = type(i.operands[0]);
  need(base.kind == Type::pointer && is(base.of[0], Type::structure) && result.kind == Type::pointer &&
           result.size == base.size,
       "a pointer into something else than a block");
  const auto member = constants_.find(i.operands[3]);
  need(member != constants_.end() && member->second == 0 && is_word(type_of(i.operands[4])),
       "a pointer that is to no element");
  const Type& array = type(type(base.of[0]).of[0]);
  need(result.of[0] == array.of[0], "a pointer of another type");
  if (array.kind == Type::array) {
    const auto index = constants_.find(i.operands[4]);
    need(index != constants_.end() && index->second < array.size, "a push constant that is not there");
  }
  define(i.operands[1], i.operands[0]);
  if (read_only_.contains(i.operands[2])) read_only_.insert(i.operands[1]);
}

void CheckedInstructions::scale(const Instruction& i) {
  need(i.operands.size() == 4 && is(i.operands[0], Type::vector) && is_real(type(i.operands[0]).of[0]) &&
           type_of(i.operands[2]) == i.operands[0] && is_real(type_of(i.operands[3])),
       "a scaled vector of another type");
  define(i.operands[1], i.operands[0]);
}

void CheckedInstructions::extract(const Instruction& i) {
  need(i.operands.size() == 4, "an instruction of another length");
  const Type& whole = type(type_of(i.operands[2]));
  const bool pair = whole.kind == Type::structure && whole.of.size() == 2;
  need((pair && i.operands[3] < 2 && whole.of[i.operands[3]] == i.operands[0]) ||
           (whole.kind == Type::vector && i.operands[3] < whole.size && whole.of[0] == i.operands[0]),
       "a part that is not there");
  define(i.operands[1], i.operands[0]);
}

void CheckedInstructions::construct(const Instruction& i) {
  if (i.operands.size() >= 2 && is(i.operands[0], Type::matrix)) return filled_matrix(i);
  need(i.operands.size() >= 2 && is(i.operands[0], Type::vector), "a composite that is no vector");
  const Type& whole = type(i.operands[0]);
  need(i.operands.size() == 2 + whole.size, "an instruction of another length");
  for (Id part : i.operands.subspan(2)) need(type_of(part) == whole.of[0], "a part of another type");
  define(i.operands[1], i.operands[0]);
}

void CheckedInstructions::fetch(const Instruction& i) {
  need(i.operands.size() == 4, "an instruction of another length");
  const Type& view = type(type_of(i.operands[2]));
  need(view.kind == Type::image && is(i.operands[0], Type::vector, 4) && type(i.operands[0]).of[0] == view.of[0] &&
           is_word(type_of(i.operands[3])),
       "a texel of another type");
  define(i.operands[1], i.operands[0]);
}

void CheckedInstructions::shuffle(const Instruction& i) {
  need(i.operands.size() == 5 && result_.shuffles, "a shuffle of another kind");
  need(is_constant(i.operands[2], scope_subgroup), "a shuffle beyond the subgroup");
  const Id t = i.operands[0];
  need((is_word(t) || is_real(t)) && type_of(i.operands[3]) == t && is_word(type_of(i.operands[4])),
       "a shuffle of another type");
  define(i.operands[1], t);
}

void CheckedInstructions::convert(const Instruction& i) {
  need(i.operands.size() == 3, "an instruction of another length");
  const Id from = type_of(i.operands[2]), to = i.operands[0];
  need(is(from, Type::integer) && is(to, Type::integer) && type(from).size != type(to).size &&
           (is_word(from) || is_word(to)),
       "a conversion of another type");
  define(i.operands[1], to);
}

void CheckedInstructions::dot(const Instruction& i) {
  const auto& o = i.operands;
  need(result_.dots && o.size() == 5 && o[4] == packed_4x8,
       "a dot product of something else than packed 8-bit integers");
  for (const Id word : {o[0], type_of(o[2]), type_of(o[3])}) need(is_word(word), "operands of another type");
  define(o[1], o[0]);
}

void CheckedInstructions::extended(const Instruction& i) {
  need(i.operands.size() == 4 && is_word(type_of(i.operands[2])) && is_word(type_of(i.operands[3])) &&
           is(i.operands[0], Type::structure) && type(i.operands[0]).of.size() == 2,
       "a product of another type");
  define(i.operands[1], i.operands[0]);
}

void CheckedInstructions::select(const Instruction& i) {
  need(i.operands.size() == 5 && is_boolean(type_of(i.operands[2])), "a condition that is no boolean");
  const Id t = i.operands[0];
  need((is_word(t) || is_real(t) || is_boolean(t)) && type_of(i.operands[3]) == t && type_of(i.operands[4]) == t,
       "a choice among other types");
  define(i.operands[1], t);
}

void CheckedInstructions::glsl(const Instruction& i) {
  need(i.operands.size() >= 5 && glsl_ != 0 && i.operands[2] == glsl_, "another set of instructions");
  const auto arguments = i.operands.subspan(4);
  const auto all = [&](std::size_t count, bool real) {
    need(arguments.size() == count, "a call of another length");
    for (Id a : arguments) need(real ? is_real(type_of(a)) : is_word(type_of(a)), "an argument of another type");
    need(real ? is_real(i.operands[0]) : is_word(i.operands[0]), "a result of another type");
  };
  const auto is_pair = [&](Id t) { return is(t, Type::vector, 2) && is_real(type(t).of[0]); };
  switch (static_cast<Function>(i.operands[3])) {
    case Function::round_even:
    case Function::trunc:
    case Function::abs:
    case Function::floor:
    case Function::ceil:
    case Function::exp2:
    case Function::sqrt:
    case Function::inverse_sqrt: all(1, true); break;
    case Function::umin:
    case Function::smin:
    case Function::smax: all(2, false); break;
    case Function::fma: all(3, true); break;
    case Function::highest_bit: all(1, false); break;
    case Function::pack_half_2x16:
      need(arguments.size() == 1 && is_pair(type_of(arguments[0])) && is_word(i.operands[0]),
           "f16 values of another type");
      break;
    case Function::unpack_half_2x16:
      need(arguments.size() == 1 && is_word(type_of(arguments[0])) && is_pair(i.operands[0]),
           "f16 values of another type");
      break;
    default: wrong(fmt::format("function {}, which our shaders do not call", i.operands[3]));
  }
  define(i.operands[1], i.operands[0]);
}

}  // namespace tosaic::spirv
