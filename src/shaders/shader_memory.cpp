// SPDX-License-Identifier: Apache-2.0
// What a shader reads and writes: storage buffers and texel views of them, an element at a time or four.
#include <optional>

#include "shaders/shader.h"

namespace tosaic::shaders {
namespace {

constexpr Word dim_buffer = 5, used_with_sampler = 1;

// Elements of 64 bits are two words.
std::uint32_t words_of(DType type) { return storage_size(type) == 8 ? 2 : 1; }

}  // namespace

bool has_quads(DType type) { return storage_size(type) == 1 || storage_size(type) == 4; }

Id Shader::stored_type(const Buffer& buffer) {
  const bool real = buffer.type == DType::f32;
  const std::size_t size = storage_size(buffer.type);
  if (buffer.quads && size == 4)
    return global(Opcode::type_vector, {type_of(real ? Kind::real : Kind::integer), 4}, false);
  if (buffer.quads && size == 2) return global(Opcode::type_vector, {type_of(Kind::integer), 2}, false);
  if (real) return type_of(Kind::real);
  if (buffer.quads || size >= 4) return type_of(Kind::integer);
  if (size == 1)
    require(spirv::Capability::storage_buffer_8, "SPV_KHR_8bit_storage");
  else
    require(spirv::Capability::storage_buffer_16);
  return global(Opcode::type_int, {static_cast<Word>(8 * size), 0}, false);
}

void Shader::place(Id variable) {
  put(decorations_, Opcode::decorate, {variable, spirv::decoration_descriptor_set, 0});
  put(decorations_, Opcode::decorate, {variable, spirv::decoration_binding, bindings_++});
}

Buffer Shader::buffer(DType type, bool written, bool quads) {
  Buffer made{0, type, quads, false};
  const Id array = global(Opcode::type_runtime_array, {stored_type(made)}, false);
  const Id block = global(Opcode::type_struct, {array}, false);
  if (decorated_.insert(block).second) {
    const std::size_t size = storage_size(type), stride = quads ? 4 * size : std::min<std::size_t>(size, 4);
    put(decorations_, Opcode::decorate, {array, spirv::decoration_array_stride, static_cast<Word>(stride)});
    put(decorations_, Opcode::decorate, {block, spirv::decoration_block});
    put(decorations_, Opcode::member_decorate, {block, 0, spirv::decoration_offset, 0});
  }
  made.variable = fresh();
  put(globals_, Opcode::variable, {pointer(spirv::storage_buffer, block), made.variable, spirv::storage_buffer});
  place(made.variable);
  if (!written) put(decorations_, Opcode::decorate, {made.variable, spirv::decoration_non_writable});
  return made;
}

Buffer Shader::texels(DType type, bool quads) {
  require(spirv::Capability::sampled_buffer);
  Buffer made{fresh(), type, quads, true};
  const Id image = image_type(made);
  put(globals_, Opcode::variable,
      {pointer(spirv::storage_uniform_constant, image), made.variable, spirv::storage_uniform_constant});
  place(made.variable);
  return made;
}

Id Shader::image_type(const Buffer& buffer) {
  const Id sampled = type_of(buffer.type == DType::f32 ? Kind::real : Kind::integer);
  return global(Opcode::type_image, {sampled, dim_buffer, 0, 0, 0, used_with_sampler, 0}, false);
}

// All four numbers of the texel that holds element or quad `index`.
Id Shader::fetch(const Buffer& buffer, Value index) {
  const Id number = type_of(buffer.type == DType::f32 ? Kind::real : Kind::integer);
  const Id view = emit(Opcode::load, image_type(buffer), {buffer.variable});
  return emit(Opcode::image_fetch, global(Opcode::type_vector, {number, 4}, false), {view, index.id});
}

Value Shader::part(Id whole, Word which, Kind kind) {
  return {this, emit(Opcode::composite_extract, type_of(kind), {whole, which}), kind};
}

Id Shader::index_pointer(const Buffer& buffer, Value index, Word word) {
  if (words_of(buffer.type) == 2) index = index * 2 + word;
  return emit(Opcode::access_chain, pointer(spirv::storage_buffer, stored_type(buffer)),
              {buffer.variable, integer(0).id, index.id});
}

// The word of an element, its upper bits 0; of f32 the number.
Value Shader::load_word(const Buffer& buffer, Value index, Word word) {
  const Kind kind = buffer.type == DType::f32 ? Kind::real : Kind::integer;
  if (buffer.texels) return part(fetch(buffer, words_of(buffer.type) == 2 ? index * 2 + word : index), 0, kind);
  const Id loaded = emit(Opcode::load, stored_type(buffer), {index_pointer(buffer, index, word)});
  if (storage_size(buffer.type) >= 4) return {this, loaded, kind};
  return {this, emit(Opcode::u_convert, type_of(Kind::integer), {loaded})};
}

// An element's word as a number.
Value Shader::number_of(Value word, DType type) {
  switch (type) {
    case DType::boolean: return word != integer(0);
    case DType::i4:
    case DType::i8: return shift_right_signed(word << integer(24), integer(24));
    case DType::i16: return shift_right_signed(word << integer(16), integer(16));
    case DType::f16: return half_to_real(word);
    case DType::bf16: return real_of(word << integer(16));
    case DType::f8e4m3:
    case DType::f8e5m2: return byte_to_real(word, type);
    default: return word;
  }
}

Value Shader::load(const Buffer& buffer, Value index) {
  if (!buffer.texels && (buffer.type == DType::i8 || buffer.type == DType::i4 || buffer.type == DType::i16)) {
    const Id loaded = emit(Opcode::load, stored_type(buffer), {index_pointer(buffer, index, 0)});
    return {this, emit(Opcode::s_convert, type_of(Kind::integer), {loaded})};
  }
  const Value word = load_word(buffer, index, 0);
  if (words_of(buffer.type) == 2) return {this, word.id, Kind::wide, load_word(buffer, index, 1).id};
  return number_of(word, buffer.type);
}

// What is stored of a number: its word, or the real itself.
Value Shader::word_of(Value value, DType type) {
  switch (type) {
    case DType::boolean: return select(value, integer(1), integer(0));
    case DType::f16:
      if (packs_) return packed_f16(value, real(0));
      [[fallthrough]];
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2: return narrow_bits(value, type);
    default: return value;
  }
}

Value Shader::packed_f16(Value low, Value high) {
  const Id pair = emit(Opcode::composite_construct, global(Opcode::type_vector, {type_of(Kind::real), 2}, false),
                       {low.id, high.id});
  const Words operands{glsl(), static_cast<Word>(Function::pack_half_2x16), pair};
  return {this, emit(Opcode::ext_inst, type_of(Kind::integer), operands)};
}

void Shader::store(const Buffer& buffer, Value index, Value value) {
  const auto put_at = [&](Word word, Id what) { emit_bare(Opcode::store, {index_pointer(buffer, index, word), what}); };
  value = word_of(value, buffer.type);
  if (words_of(buffer.type) == 2) {
    put_at(0, value.id);
    return put_at(1, value.high);
  }
  if (storage_size(buffer.type) == 4) return put_at(0, value.id);
  put_at(0, emit(Opcode::u_convert, stored_type(buffer), {value.id}));
}

Quad Shader::load_quad(const Buffer& buffer, Value index) {
  if (!buffer.texels) return numbers(load_raw(buffer, index), buffer.type);
  Quad quad;
  const bool packed = storage_size(buffer.type) == 1;
  if (packed) {
    const Value all = load_word(buffer, index, 0);
    for (Word i = 0; i < 4; ++i) quad[i] = number_of(shift_right_unsigned(all, integer(8 * i)) & 0xff, buffer.type);
    return quad;
  }
  const Id all =
      buffer.texels ? fetch(buffer, index) : emit(Opcode::load, stored_type(buffer), {index_pointer(buffer, index, 0)});
  for (Word i = 0; i < 4; ++i) quad[i] = part(all, i, buffer.type == DType::f32 ? Kind::real : Kind::integer);
  return quad;
}

Quad Shader::load_quad_first(const Buffer& buffer, Value index) {
  std::swap(body_, prologue_);
  const Quad quad = load_quad(buffer, index);
  std::swap(body_, prologue_);
  return quad;
}

void Shader::store_quad(const Buffer& buffer, Value index, const Quad& quad) {
  Words parts;
  if (storage_size(buffer.type) == 2) {
    for (std::size_t i = 0; i < 4; i += 2) {
      if (packs_ && buffer.type == DType::f16) {
        parts.push_back(packed_f16(quad[i], quad[i + 1]).id);
        continue;
      }
      const Value low = word_of(quad[i], buffer.type) & 0xffff, high = word_of(quad[i + 1], buffer.type);
      parts.push_back((low | (high << integer(16))).id);
    }
    const Id whole = emit(Opcode::composite_construct, stored_type(buffer), parts);
    return emit_bare(Opcode::store, {index_pointer(buffer, index, 0), whole});
  }
  std::optional<Value> packed;
  for (std::size_t i = 0; i < 4; ++i) {
    const Value word = word_of(quad[i], buffer.type);
    parts.push_back(word.id);
    if (storage_size(buffer.type) != 1) continue;
    const Value byte = i == 3 ? word : word & 0xff, moved = i ? byte << integer(8 * static_cast<int>(i)) : byte;
    packed = packed ? *packed | moved : moved;
  }
  const Id whole = packed ? packed->id : emit(Opcode::composite_construct, stored_type(buffer), parts);
  emit_bare(Opcode::store, {index_pointer(buffer, index, 0), whole});
}

// As it is, or as what another memory keeps: with half precision, two values of one type may be kept in two ways.
void Shader::copy(const Buffer& from, Value read, const Buffer& to, Value write) {
  if (from.type != to.type) return store(to, write, load(from, read));
  for (Word word = 0; word < words_of(from.type); ++word) {
    Value moved = load_word(from, read, word);
    if (storage_size(to.type) < 4) moved.id = emit(Opcode::u_convert, stored_type(to), {moved.id});
    emit_bare(Opcode::store, {index_pointer(to, write, word), moved.id});
  }
}

Value Shader::shuffle(Value value, Value lane) {
  require(spirv::Capability::group_non_uniform);
  require(spirv::Capability::group_non_uniform_shuffle);
  return {this,
          emit(Opcode::group_non_uniform_shuffle, type_of(value.kind),
               {integer(std::int64_t{spirv::scope_subgroup}).id, value.id, lane.id}),
          value.kind};
}

}  // namespace tosaic::shaders
