// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/check_globals.h"

#include <algorithm>

namespace tosaic::spirv {
namespace {

constexpr Word most_shared_bytes = 1 << 16;  // what a device has is asked when it is known

}  // namespace

void CheckedGlobals::add_type(Id id, Type made) {
  define(id, 0);
  const auto same = [&](const auto& other) {
    return other.second.kind == made.kind && other.second.size == made.size && other.second.of == made.of;
  };
  need(std::none_of(types_.begin(), types_.end(), same), "a type is declared twice");
  types_.emplace(id, std::move(made));
}

void CheckedGlobals::globals() {
  while (!comes(Opcode::function)) {
    const Instruction i = next();
    const auto& o = i.operands;
    const auto length = [&](std::size_t n) { need(o.size() == n, "an instruction of another length"); };
    switch (i.opcode) {
      case Opcode::type_void:
        length(1);
        add_type(o[0], {Type::nothing});
        break;
      case Opcode::type_bool:
        length(1);
        add_type(o[0], {Type::boolean_value});
        break;
      case Opcode::type_int:
        length(3);
        need(o[2] == 0 && (o[1] == 32 || (o[1] == 8 && (may_store_8_ || result_.int8_matrices)) ||
                           (o[1] == 16 && may_store_16_)),
             "an integer type that our shaders do not have");
        add_type(o[0], {Type::integer, o[1]});
        break;
      case Opcode::type_float:
        length(2);
        need(o[1] == 32 || (o[1] == 16 && result_.matrices), "a float that our shaders do not have");
        add_type(o[0], {Type::real, o[1]});
        break;
      case Opcode::type_vector:
        length(3);
        need((is_word(o[1]) || is_real(o[1])) && o[2] >= 2 && o[2] <= 4, "a vector that our shaders do not have");
        add_type(o[0], {Type::vector, o[2], {o[1]}});
        break;
      case Opcode::type_cooperative_matrix:
        need(result_.matrices, "a matrix in a module that has none");
        add_type(o[0], matrix_type(o));
        break;
      case Opcode::type_image: image(o); break;
      case Opcode::type_array:
        length(3);
        need(constants_.contains(o[2]) && bytes_of(o[1]) > 0 && constants_[o[2]] > 0 &&
                 constants_[o[2]] <= most_shared_bytes / bytes_of(o[1]) && !is(o[1], Type::integer, 8) &&
                 !is(o[1], Type::integer, 16) && !is(o[1], Type::real, 16),
             "an array that our shaders do not have");
        add_type(o[0], {Type::array, constants_[o[2]], {o[1]}});
        break;
      case Opcode::type_runtime_array:
        length(2);
        need(is_stored(o[1]), "an array whose elements are no scalars");
        add_type(o[0], {Type::runtime_array, 0, {o[1]}});
        break;
      case Opcode::type_struct: structure(o); break;
      case Opcode::type_pointer: pointer(o); break;
      case Opcode::type_function:
        length(2);
        need(is(o[1], Type::nothing), "a function with a result");
        add_type(o[0], {Type::function, 0, {o[1]}});
        break;
      case Opcode::constant_true:
      case Opcode::constant_false:
        length(2);
        need(is_boolean(o[0]), "a boolean of another type");
        define(o[1], o[0]);
        break;
      case Opcode::constant:
        length(3);
        need(is_word(o[0]) || is_real(o[0]), "a constant that has not 32 bits");
        define(o[1], o[0]);
        if (is_word(o[0])) constants_[o[1]] = o[2];
        if (is_word(o[0])) bounds_.constant(o[1], o[2]);
        break;
      case Opcode::variable:
        length(3);
        variable(o);
        break;
      default: wrong(fmt::format("instruction {} among types and constants", static_cast<int>(i.opcode)));
    }
  }
}

// Can elements of buffers be so? Some numbers are only in matrices.
bool CheckedGlobals::is_stored(Id t) const {
  return bytes_of(t) > 0 && !is(t, Type::real, 16) && (may_store_8_ || !is(t, Type::integer, 8));
}

// A uniform texel buffer, whose format the binding says.
void CheckedGlobals::image(std::span<const Word> o) {
  constexpr Word buffer_of_unknown_format[] = {5, 0, 0, 0, 1, 0};
  need(may_view_ && o.size() == 8 && (is_word(o[1]) || is_real(o[1])) &&
           std::ranges::equal(o.subspan(2), buffer_of_unknown_format),
       "an image that is no texel buffer");
  add_type(o[0], {Type::image, 0, {o[1]}});
}

void CheckedGlobals::structure(std::span<const Word> o) {
  need(o.size() == 2 || o.size() == 3, "a structure that our shaders do not have");
  if (o.size() == 3) {
    need(is_word(o[1]) && is_word(o[2]), "a pair whose elements are no 32-bit words");
  } else {
    // The block of a buffer or of the push constants: laid out, or a driver must guess.
    need(is(o[1], Type::runtime_array) || is(o[1], Type::array), "a block that holds no array");
    need(decoration(o[0], decoration_block) && laid_.contains(o[0]), "a block without a layout");
    need(!is(o[1], Type::array) || (is_word(type(o[1]).of[0]) && type(o[1]).size == push_words),
         "push constants of another form");
    need(decoration(o[1], decoration_array_stride) == bytes_of(type(o[1]).of[0]), "an array of another stride");
  }
  add_type(o[0], {Type::structure, 0, {o.begin() + 1, o.end()}});
}

void CheckedGlobals::pointer(std::span<const Word> o) {
  need(o.size() == 3, "an instruction of another length");
  const Type& target = type(o[2]);
  const bool block = target.kind == Type::structure && target.of.size() == 1;
  const bool number = is_stored(o[2]);
  const bool word = is_word(o[2]);
  bool fits = false;
  switch (o[1]) {
    case storage_uniform_constant: fits = target.kind == Type::image; break;
    case storage_input:
      fits = word || (target.kind == Type::vector && target.size == 3 && is_word(target.of[0]));
      break;
    case storage_function:
      fits = word || is_real(o[2]) || is_boolean(o[2]) || target.kind == Type::vector || target.kind == Type::matrix;
      break;
    case storage_shared:
      fits = word || is_real(o[2]) || target.kind == Type::vector ||
             (target.kind == Type::array && !decoration(o[2], decoration_array_stride));
      break;
    case storage_push: fits = word || (block && is(target.of[0], Type::array)); break;
    case storage_buffer: fits = number || (block && is(target.of[0], Type::runtime_array)); break;
    default: break;
  }
  need(fits, "a pointer that our shaders do not have");
  add_type(o[0], {Type::pointer, o[1], {o[2]}});
}

void CheckedGlobals::variable(std::span<const Word> o) {
  need(is(o[0], Type::pointer, o[2]) && o[2] != storage_function, "a variable of another type");
  define(o[1], o[0]);
  const Id target = type(o[0]).of[0];
  if (o[2] == storage_input) return input(o[1]);
  if (o[2] == storage_shared) {
    need(is(target, Type::array), "shared memory that is no array");
    result_.shared_bytes += type(target).size * bytes_of(type(target).of[0]);
    return need(result_.shared_bytes <= most_shared_bytes, "more shared memory than any device has");
  }
  if (o[2] == storage_uniform_constant) {
    const bool words = is_word(type(target).of[0]);
    using Kind = ShaderBinding::Kind;
    return bind(o[1], {words ? Kind::texels_of_words : Kind::texels_of_reals, 32, false});
  }
  need(is(target, Type::structure), "a variable that is no block");
  if (o[2] == storage_push) {
    need(!result_.has_pushes, "push constants twice");
    result_.has_pushes = true;
    return;
  }
  const Word bits = 8 * bytes_of(type(type(target).of[0]).of[0]);
  const bool written = !decoration(o[1], decoration_non_writable);
  bind(o[1], {ShaderBinding::Kind::buffer, bits, written});
  if (!written) read_only_.insert(o[1]);
}
void CheckedGlobals::bind(Id variable, ShaderBinding made) {
  const auto binding = decoration(variable, decoration_binding);
  need(binding && decoration(variable, decoration_descriptor_set) == 0u, "a buffer without a binding");
  need(*binding == result_.bindings.size(), "bindings out of order");
  result_.bindings.push_back(made);
}

void CheckedGlobals::input(Id id) {
  const auto which = decoration(id, decoration_built_in);
  const bool number = which == built_in_subgroup;
  need(which && (number || (*which >= built_in_group && *which <= built_in_invocation)) && !inputs_.contains(*which) &&
           is_word(type(type_of(id)).of[0]) == number && (!number || result_.matrices) &&
           std::ranges::find(interface_ids_, id) != interface_ids_.end(),
       "an input that our shaders do not have");
  inputs_[*which] = id;
}

}  // namespace tosaic::spirv
