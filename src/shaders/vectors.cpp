// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "shaders/shader.h"

namespace tosaic::shaders {

Vector VectorVariable::get() const {
  return {shader_, shader_->emit(Opcode::load, shader_->vector4(kind_), {pointer_}), kind_};
}
void VectorVariable::set(Vector value) const { shader_->emit_bare(Opcode::store, {pointer_, value.id}); }

RawQuad RawVariable::get() const {
  RawQuad raw;
  for (std::size_t i = 0; i < words_.size(); ++i) raw.words[i] = words_[i].get();
  if (!vector_.empty()) raw.vector = vector_[0].get();
  return raw;
}
void RawVariable::set(const RawQuad& raw) const {
  for (std::size_t i = 0; i < words_.size(); ++i) words_[i].set(raw.words[i]);
  if (!vector_.empty()) vector_[0].set(raw.vector);
}

Value Shader::local() {
  if (!local_value_)
    local_value_ = emit(Opcode::composite_extract, type_of(Kind::integer), {built_in(spirv::built_in_local), 0});
  return {this, local_value_};
}

Value Shader::group() {
  if (!group_value_) {
    const Id at = built_in(spirv::built_in_group), word = type_of(Kind::integer);
    const Value x{this, emit(Opcode::composite_extract, word, {at, 0})};
    const Value y{this, emit(Opcode::composite_extract, word, {at, 1})};
    group_value_ = (x + y * row_groups).id;
  }
  return {this, group_value_};
}

Vector Shader::vector(const Quad& p) {
  return {this, emit(Opcode::composite_construct, vector4(p[0].kind), {p[0].id, p[1].id, p[2].id, p[3].id}), p[0].kind};
}

VectorVariable Shader::variable(Vector initial) {
  VectorVariable v;
  v.shader_ = this;
  v.kind_ = initial.kind;
  v.pointer_ = fresh();
  put(variables_, Opcode::variable,
      {pointer(spirv::storage_function, vector4(initial.kind)), v.pointer_, spirv::storage_function});
  v.set(initial);
  return v;
}

RawQuad Shader::load_raw(const Buffer& buffer, Value which) {
  const Id word = type_of(Kind::integer);
  const Id loaded = emit(Opcode::load, stored_type(buffer), {index_pointer(buffer, which, 0)});
  RawQuad raw;
  switch (storage_size(buffer.type)) {
    case 1: raw.words[0] = {this, loaded}; break;
    case 2:
      for (Word i : {0u, 1u}) raw.words[i] = {this, emit(Opcode::composite_extract, word, {loaded, i})};
      break;
    default: raw.vector = {this, loaded, buffer.type == DType::f32 ? Kind::real : Kind::integer};
  }
  return raw;
}

RawVariable Shader::variable(const RawQuad& initial) {
  RawVariable v;
  if (initial.vector.shader)
    v.vector_.push_back(variable(initial.vector));
  else
    for (const Value& word : initial.words)
      if (word.shader) v.words_.push_back(variable(word));
  return v;
}

Quad Shader::numbers(const RawQuad& raw, DType type) {
  Quad quad;
  for (Word i = 0; i < 4; ++i) {
    const Value &half = raw.words[i / 2], &byte = raw.words[0];
    switch (type) {
      case DType::boolean: quad[i] = (byte & (0xffll << 8 * i)) != integer(0); break;
      case DType::i4:
      case DType::i8: quad[i] = shift_right_signed(i == 3 ? byte : byte << integer(24 - 8 * i), integer(24)); break;
      case DType::f8e4m3:
      case DType::f8e5m2: quad[i] = byte_to_real(shift_right_unsigned(byte, integer(8 * i)) & 0xff, type); break;
      case DType::i16: quad[i] = shift_right_signed(i % 2 ? half : half << integer(16), integer(16)); break;
      case DType::f16: quad[i] = half_to_real(i % 2 ? shift_right_unsigned(half, integer(16)) : half); break;
      case DType::bf16: quad[i] = real_of(i % 2 ? half & 0xffff0000ll : half << integer(16)); break;
      default: quad[i] = lane(raw.vector, i);
    }
  }
  return quad;
}

Shared Shader::shared(Kind kind, std::uint32_t vectors) {
  const Id array = global(Opcode::type_array, {vector4(kind), integer(std::int64_t{vectors}).id}, false);
  const Id id = fresh();
  put(globals_, Opcode::variable, {pointer(spirv::storage_shared, array), id, spirv::storage_shared});
  return {id, kind};
}

Id Shader::vector_pointer(const Shared& memory, Value which) {
  return emit(Opcode::access_chain, pointer(spirv::storage_shared, vector4(memory.kind)), {memory.variable, which.id});
}

Vector Shader::load(const Shared& memory, Value which) {
  return {this, emit(Opcode::load, vector4(memory.kind), {vector_pointer(memory, which)}), memory.kind};
}

Value Shader::load(const Shared& memory, Value which, Value part) {
  const Id type = type_of(memory.kind);
  const Id at = emit(Opcode::access_chain, pointer(spirv::storage_shared, type), {memory.variable, which.id, part.id});
  return {this, emit(Opcode::load, type, {at}), memory.kind};
}

void Shader::store(const Shared& memory, Value which, Vector value) {
  emit_bare(Opcode::store, {vector_pointer(memory, which), value.id});
}

void Shader::store(const Shared& memory, Value which, Value part, Value value) {
  const Id at = emit(Opcode::access_chain, pointer(spirv::storage_shared, type_of(memory.kind)),
                     {memory.variable, which.id, part.id});
  emit_bare(Opcode::store, {at, value.id});
}

void Shader::barrier() {
  const Id group = integer(std::int64_t{spirv::scope_group}).id;
  emit_bare(Opcode::control_barrier, {group, group, integer(std::int64_t{spirv::acquire_release_shared}).id});
}

Vector operator+(Vector a, Vector b) {
  Shader& s = *a.shader;
  const Opcode opcode = a.kind == Kind::real ? Opcode::f_add : Opcode::i_add;
  return {&s, s.emit(opcode, s.vector4(a.kind), {a.id, b.id}), a.kind};
}

Vector operator*(Vector a, Value b) {
  Shader& s = *a.shader;
  const Id type = s.vector4(a.kind);
  if (a.kind == Kind::real) return {&s, s.emit(Opcode::vector_times_scalar, type, {a.id, b.id}), a.kind};
  return {&s, s.emit(Opcode::i_mul, type, {a.id, s.splat(b).id}), a.kind};
}

Value lane(Vector v, Word which) {
  Shader& s = *v.shader;
  return {&s, s.emit(Opcode::composite_extract, s.type_of(v.kind), {v.id, which}), v.kind};
}

}  // namespace tosaic::shaders
