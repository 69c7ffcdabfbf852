// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "formats/spirv/compute/check_shader.h"
#include "formats/spirv/compute/run_shader.h"

namespace tosaic::spirv {

// Ids become registers, labels indices in the list of steps; merges, which only tell how blocks nest, go.
class ShaderDecoder {
 public:
  explicit ShaderDecoder(std::span<const Word> words) : words_(words), registers_(words[3], 0) {
    program_.first_.assign(1, 0);
    program_.pushes_at_ = take(push_words);
    program_.invocation_at_ = take(3);
    program_.local_at_ = take(3);
    program_.group_at_ = take(3);
    program_.subgroup_at_ = take(1);
  }

  std::optional<ShaderProgram> decode() {
    for (std::size_t at = 5; at < words_.size(); at += words_[at] >> 16)
      if (!instruction(static_cast<Opcode>(words_[at] & 0xffff), words_.subspan(at + 1, (words_[at] >> 16) - 1)))
        return std::nullopt;
    for (auto& step : program_.steps_) {
      if (step.op == Opcode::branch) step.a = labels_[step.a];
      if (step.op == Opcode::branch_conditional) step.b = labels_[step.b], step.c = labels_[step.c];
    }
    // What products of matrices read by four words are eight of f16 each: as integers they might be no numbers.
    for (ShaderProgram::Binding& b : program_.bindings_)
      if (multiplies_halves_ && b.element_bytes == 4 && !b.real && b.lanes == 4) b = {2, false, 8};
    return std::move(program_);
  }

 private:
  struct Type {
    Opcode kind{};
    Word bits = 0, words = 1;  // bits: of an array its elements
    Id of = 0;                 // what a pointer, an array, a matrix or a block holds
    Word columns = 0;          // of a matrix
  };
  struct Pointer {
    // base: a binding, the register of a variable, or where shared memory begins; index: a register.
    Word storage = 0, base = 0, index = 0;
    Word stride = 1;  // of shared memory, in words
  };
  using Operands = std::span<const Word>;

  Word take(Word words) {
    const auto at = static_cast<Word>(program_.first_.size());
    program_.first_.resize(at + words, 0);
    return at;
  }
  Word at(Id id) const { return registers_[id]; }
  // The register of a result.
  Word result(Id id, Id type) {
    typed_[id] = type;
    return registers_[id] = take(types_[type].words);
  }
  void add(Opcode op, Word function, Word to, Word a = 0, Word b = 0, Word c = 0) {
    program_.steps_.push_back({op, function, to, a, b, c});
  }

  bool instruction(Opcode op, Operands o) {
    switch (op) {
      case Opcode::capability:
      case Opcode::extension:
      case Opcode::ext_inst_import:
      case Opcode::memory_model:
      case Opcode::entry_point:
      case Opcode::member_decorate:
      case Opcode::type_function:
      case Opcode::function:
      case Opcode::loop_merge:
      case Opcode::selection_merge:
      case Opcode::function_end: return true;
      case Opcode::execution_mode: program_.group_size_ = o[2]; return true;
      case Opcode::decorate:
        if (o[1] == decoration_binding) bindings_[o[0]] = o[2];
        if (o[1] == decoration_built_in) built_in_[o[0]] = o[2];
        return true;
      case Opcode::type_void:
      case Opcode::type_bool: types_[o[0]] = {op, 32}; return true;
      case Opcode::type_int:
      case Opcode::type_float: types_[o[0]] = {op, o[1]}; return o[1] <= 32;
      case Opcode::type_cooperative_matrix: {
        const Type& number = types_[o[1]];
        const MatrixSize size = matrix_size(use_of(o), number.kind == Opcode::type_int);
        types_[o[0]] = {op, number.bits, size.shares(), o[1], size.columns};
        return true;
      }
      case Opcode::type_image: types_[o[0]] = {op, 32, 1, o[1]}; return true;
      case Opcode::type_vector: types_[o[0]] = {op, 32, o[2], o[1]}; return true;
      case Opcode::type_array: types_[o[0]] = {op, program_.first_[at(o[2])], 1, o[1]}; return true;
      case Opcode::type_runtime_array: types_[o[0]] = {op, 32, 1, o[1]}; return true;
      case Opcode::type_struct: types_[o[0]] = {op, 32, static_cast<Word>(o.size() - 1), o[1]}; return true;
      case Opcode::type_pointer: types_[o[0]] = {op, 32, 1, o[2]}; return true;
      case Opcode::constant_true:
      case Opcode::constant_false: program_.first_[result(o[1], o[0])] = op == Opcode::constant_true; return true;
      case Opcode::constant: program_.first_[result(o[1], o[0])] = o[2]; return o.size() == 3;
      case Opcode::variable: return variable(o);
      case Opcode::label: labels_[o[0]] = static_cast<Word>(program_.steps_.size()); return true;
      case Opcode::branch: add(op, 0, 0, o[0]); return true;
      case Opcode::branch_conditional: add(op, 0, 0, at(o[0]), o[1], o[2]); return true;
      case Opcode::return_: add(op, 0, 0); return true;
      case Opcode::access_chain: return access(o);
      case Opcode::load: return load(o);
      case Opcode::store: return store(o);
      case Opcode::image_fetch: return fetch(o);
      case Opcode::cooperative_matrix_load: return matrix(op, o[2], result(o[1], o[0]), o[0], o[3], o[4]);
      case Opcode::cooperative_matrix_store: return matrix(op, o[0], at(o[1]), typed_[o[1]], o[2], o[3]);
      case Opcode::cooperative_matrix_mul_add:
        program_.multiplies_ = true;
        multiplies_halves_ |= !of_integers(o[0]);
        program_.rounds_ |= multiplies_halves_;
        add(op, of_integers(o[0]), result(o[1], o[0]), at(o[2]), at(o[3]), at(o[4]));
        return true;
      case Opcode::composite_construct: return construct(o);
      case Opcode::control_barrier:
        program_.waits_ = true;
        add(op, 0, 0);
        return true;
      default: return arithmetic(op, o);
    }
  }

  MatrixUse use_of(Operands matrix) const { return static_cast<MatrixUse>(program_.first_[at(matrix[5])]); }
  bool of_integers(Id matrix) { return types_[types_[matrix].of].kind == Opcode::type_int; }

  bool variable(Operands o) {
    const Id held = types_[o[0]].of;
    switch (o[2]) {
      case storage_input: return input(o[1]);
      case storage_shared:
        pointers_[o[1]] = {o[2], program_.shared_words_, 0, types_[types_[held].of].words};
        program_.shared_words_ += types_[held].bits * types_[types_[held].of].words;
        return true;
      case storage_function: pointers_[o[1]] = {o[2], take(types_[held].words), 0}; return true;
      case storage_push: pointers_[o[1]] = {o[2], program_.pushes_at_, 0}; return true;
      case storage_uniform_constant: bind(o, types_[types_[held].of]); return true;
      case storage_buffer: bind(o, types_[types_[types_[held].of].of]); return true;
      default: return false;
    }
  }

  bool input(Id id) {
    switch (built_in_[id]) {
      case built_in_invocation: pointers_[id] = {storage_input, program_.invocation_at_, 0}; return true;
      case built_in_local: pointers_[id] = {storage_input, program_.local_at_, 0}; return true;
      case built_in_group: pointers_[id] = {storage_input, program_.group_at_, 0}; return true;
      case built_in_subgroup: pointers_[id] = {storage_input, program_.subgroup_at_, 0}; return true;
      default: return false;
    }
  }

  void bind(Operands o, const Type& element) {
    const Word binding = bindings_[o[1]];
    pointers_[o[1]] = {o[2], binding, 0};
    const bool vector = element.kind == Opcode::type_vector;
    const Type& number = vector ? types_[element.of] : element;
    auto& list = program_.bindings_;
    list.resize(std::max<std::size_t>(list.size(), binding + 1));
    list[binding] = {number.bits / 8, number.kind == Opcode::type_float, vector ? element.words : 1};
    if (vector && element.words == 2) list[binding] = {2, false, 4};  // pairs of words hold f16
  }

  // Of a block's only array.
  bool access(Operands o) {
    if (o.size() < 4 || !pointers_.contains(o[2])) return false;
    Pointer p = pointers_[o[2]];
    if (p.storage == storage_shared) {  // an element, or a part of it
      const Word place = take(1);
      program_.steps_.push_back({Opcode::access_chain, p.base, place, at(o[3]), o.size() > 4 ? at(o[4]) : 0, p.stride});
      pointers_[o[1]] = {storage_shared, 0, place};
      return true;
    }
    if (o.size() != 5) return false;
    if (p.storage == storage_push)
      p.base += program_.first_[at(o[4])];  // a constant
    else
      p.index = at(o[4]);
    pointers_[o[1]] = p;
    return p.storage == storage_push || p.storage == storage_buffer;
  }

  bool load(Operands o) {
    const auto found = pointers_.find(o[2]);
    if (found == pointers_.end()) return false;
    const Pointer& p = found->second;
    if (p.storage == storage_uniform_constant) {
      images_[o[1]] = p.base;
      return true;
    }
    const Word to = result(o[1], o[0]);
    if (p.storage == storage_buffer)
      add(Opcode::load, storage_buffer, to, p.base, p.index);
    else if (p.storage == storage_shared)
      add(Opcode::load, storage_shared, to, p.index, types_[o[0]].words);
    else
      add(Opcode::load, 0, to, p.base, types_[o[0]].words);
    return true;
  }
  bool store(Operands o) {
    const auto found = pointers_.find(o[0]);
    if (found == pointers_.end()) return false;
    const Pointer& p = found->second;
    if (p.storage == storage_buffer)
      add(Opcode::store, storage_buffer, p.base, at(o[1]), p.index);
    else if (p.storage == storage_shared)
      add(Opcode::store, storage_shared, p.index, at(o[1]), types_[typed_[o[1]]].words);
    else
      add(Opcode::load, 0, p.base, at(o[1]), types_[typed_[o[1]]].words);
    return true;
  }

  bool fetch(Operands o) {
    const auto image = images_.find(o[2]);
    if (image == images_.end()) return false;
    add(Opcode::image_fetch, 0, result(o[1], o[0]), image->second, at(o[3]));
    return true;
  }
  // What is read or written, and where: from an element of shared memory on.
  bool matrix(Opcode op, Id pointer, Word elements, Id type, Id layout, Id stride) {
    const auto found = pointers_.find(pointer);
    if (found == pointers_.end() || found->second.storage != storage_shared) return false;
    const Type& whole = types_[type];
    add(op, 0, elements, found->second.index, static_cast<Word>(program_.shared_matrices_.size()));
    program_.shared_matrices_.push_back({program_.first_[at(layout)] == matrix_by_columns,
                                         program_.first_[at(stride)] * 4, whole.bits, whole.columns, whole.words});
    return true;
  }
  bool construct(Operands o) {
    const Word to = result(o[1], o[0]);
    if (types_[o[0]].kind == Opcode::type_cooperative_matrix) {
      for (Word i = 0; i < types_[o[0]].words; ++i) add(Opcode::load, 0, to + i, at(o[2]), 1);
      return true;
    }
    for (Word i = 2; i < o.size(); ++i) add(Opcode::load, 0, to + i - 2, at(o[i]), 1);
    return true;
  }

  bool arithmetic(Opcode op, Operands o) {
    if (o.size() < 3) return false;
    if (op == Opcode::group_non_uniform_shuffle) {
      program_.shuffles_ = true;
      add(op, 0, result(o[1], o[0]), at(o[3]), at(o[4]));
      return true;
    }
    const Opcode kind = types_[o[0]].kind;
    if (op != Opcode::ext_inst && (kind == Opcode::type_vector || kind == Opcode::type_cooperative_matrix))
      return parts(op, o);
    const Word to = result(o[1], o[0]);
    const auto operand = [&](std::size_t i) { return i < o.size() ? at(o[i]) : 0; };
    switch (op) {
      case Opcode::ext_inst:
        if (!is_known(static_cast<Function>(o[3]))) return false;
        program_.rounds_ |= is_rounded(static_cast<Function>(o[3]));
        add(op, o[3], to, operand(4), operand(5), operand(6));
        return true;
      case Opcode::composite_extract: add(Opcode::load, 0, to, at(o[2]) + o[3], 1); return o.size() == 4;
      case Opcode::u_convert:
      case Opcode::s_convert: {
        const Word from = types_[typed_[o[2]]].bits, into = types_[o[0]].bits;
        add(op, std::min(from, into), to, operand(2));  // the bits that count
        return true;
      }
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul:
      case Opcode::f_div: program_.rounds_ = true; break;
      default: break;
    }
    if (!is_known(op)) return false;
    add(op, 0, to, operand(2), operand(3), operand(4));
    return true;
  }

  // Of vectors and matrices, part by part.
  bool parts(Opcode op, Operands o) {
    const bool scaled = op == Opcode::vector_times_scalar;
    const bool rounds = scaled || op == Opcode::f_add || op == Opcode::f_sub || op == Opcode::f_mul;
    if (!rounds && op != Opcode::i_add && op != Opcode::i_sub && op != Opcode::i_mul) return false;
    program_.rounds_ |= rounds;
    const Word to = result(o[1], o[0]);
    for (Word i = 0; i < types_[o[0]].words; ++i)
      add(scaled ? Opcode::f_mul : op, 0, to + i, at(o[2]) + i, at(o[3]) + (scaled ? 0 : i));
    return true;
  }

  static bool is_rounded(Function f) {
    using enum Function;
    return f == exp2 || f == sqrt || f == inverse_sqrt || f == fma || f == pack_half_2x16 || f == unpack_half_2x16;
  }
  static bool is_known(Function f) {
    switch (f) {
      case Function::round_even:
      case Function::trunc:
      case Function::abs:
      case Function::floor:
      case Function::ceil:
      case Function::exp2:
      case Function::sqrt:
      case Function::inverse_sqrt:
      case Function::umin:
      case Function::smin:
      case Function::smax:
      case Function::fma:
      case Function::pack_half_2x16:
      case Function::unpack_half_2x16:
      case Function::highest_bit: return true;
    }
    return false;
  }
  static bool is_known(Opcode op) {
    switch (op) {
      case Opcode::bitcast:
      case Opcode::convert_f_to_s:
      case Opcode::convert_s_to_f:
      case Opcode::convert_u_to_f:
      case Opcode::s_negate:
      case Opcode::bit_not:
      case Opcode::f_negate:
      case Opcode::logical_not:
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul:
      case Opcode::f_div:
      case Opcode::i_add:
      case Opcode::i_sub:
      case Opcode::i_mul:
      case Opcode::u_div:
      case Opcode::s_div:
      case Opcode::u_mod:
      case Opcode::u_mul_extended:
      case Opcode::s_mul_extended:
      case Opcode::s_dot:
      case Opcode::select:
      case Opcode::logical_equal:
      case Opcode::logical_not_equal:
      case Opcode::logical_or:
      case Opcode::logical_and:
      case Opcode::i_equal:
      case Opcode::i_not_equal:
      case Opcode::s_greater_than:
      case Opcode::s_greater_than_equal:
      case Opcode::u_less_than:
      case Opcode::s_less_than:
      case Opcode::s_less_than_equal:
      case Opcode::f_ord_equal:
      case Opcode::f_ord_less_than:
      case Opcode::f_ord_greater_than:
      case Opcode::f_ord_less_than_equal:
      case Opcode::f_ord_greater_than_equal:
      case Opcode::shift_right_logical:
      case Opcode::shift_right_arithmetic:
      case Opcode::shift_left_logical:
      case Opcode::bitwise_or:
      case Opcode::bitwise_xor:
      case Opcode::bitwise_and: return true;
      default: return false;
    }
  }

  std::span<const Word> words_;
  ShaderProgram program_;
  std::vector<Word> registers_;  // by id
  std::map<Id, Id> typed_;
  std::map<Id, Type> types_;
  std::map<Id, Pointer> pointers_;
  std::map<Id, Word> bindings_, labels_, images_, built_in_;
  bool multiplies_halves_ = false;
};

std::optional<ShaderProgram> ShaderProgram::decode(std::span<const Word> words) {
  return ShaderDecoder(words).decode();
}

}  // namespace tosaic::spirv
