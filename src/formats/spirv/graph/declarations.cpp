// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/graph/declarations.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tosaic::spirv {
namespace {

constexpr std::int64_t most_tensor_bytes = std::int64_t{1} << 40, most_inline_bytes = std::int64_t{1} << 28;
constexpr int deepest_constant = 16;
constexpr std::int64_t most_text_bytes = std::int64_t{1} << 24;

}  // namespace

Status Declarations::declare(const Instruction& i) {
  switch (i.opcode) {
    case Opcode::name:
      TOSAIC_CHECK(at_least(i, 2));
      names_[i.operands[0]] = text(i.operands.subspan(1));
      return {};
    case Opcode::decorate:
      if (i.operands.size() == 3 && i.operands[1] == decoration_binding) bindings_[i.operands[0]] = i.operands[2];
      return {};
    case Opcode::type_bool: return element(i, 1, DType::boolean);
    case Opcode::type_int: return integer_type(i);
    case Opcode::type_float: return float_type(i);
    case Opcode::type_array:
    case Opcode::type_struct:
    case Opcode::type_pointer: {
      TOSAIC_TRY(const Id id, fresh(i, 0));
      types_[id].kind = i.opcode == Opcode::type_array    ? Type::Kind::array
                        : i.opcode == Opcode::type_struct ? Type::Kind::structure
                                                          : Type::Kind::pointer;
      types_[id].members.assign(i.operands.begin() + 1, i.operands.end());
      return {};
    }
    case Opcode::type_tensor: return tensor_type(i);
    case Opcode::type_graph: {
      TOSAIC_TRY(const Id id, fresh(i, 0));
      TOSAIC_CHECK(at_least(i, 2));
      Type& t = types_[id];
      t.kind = Type::Kind::graph;
      t.inputs = i.operands[1];
      t.members.assign(i.operands.begin() + 2, i.operands.end());
      if (t.inputs >= t.members.size()) return corrupt(i.at, "a graph without outputs");
      return {};
    }
    case Opcode::constant_true:
    case Opcode::constant_false:
    case Opcode::constant:
    case Opcode::constant_composite:
    case Opcode::constant_composite_replicate:
    case Opcode::constant_null:
    case Opcode::graph_constant: return add_constant(i);
    default: return {};
  }
}

Status Declarations::at_least(const Instruction& i, std::size_t count) {
  if (i.operands.size() >= count) return {};
  return corrupt(i.at, "opcode {} has {} operands, {} are needed", static_cast<unsigned>(i.opcode), i.operands.size(),
                 count);
}

Result<Id> Declarations::fresh(const Instruction& i, std::size_t k) {
  TOSAIC_CHECK(at_least(i, k + 1));
  const Id id = i.operands[k];
  if (id == 0 || id >= bound_) return corrupt(i.at, "id {} is beyond the bound {}", id, bound_);
  if (!defined_.insert({id, i.at}).second) return corrupt(i.at, "id {} is defined twice", id);
  return id;
}

Result<const Declarations::Type*> Declarations::type(const Instruction& i, std::size_t k, Type::Kind kind) const {
  TOSAIC_CHECK(at_least(i, k + 1));
  return type(i.at, i.operands[k], kind);
}

Result<const Declarations::Type*> Declarations::type(std::size_t at, Id id, Type::Kind kind) const {
  const auto found = types_.find(id);
  if (found == types_.end() || found->second.kind != kind) return corrupt(at, "id {} is no type that fits here", id);
  return &found->second;
}

std::string Declarations::text(std::span<const Word> words, std::size_t* used) {
  const auto* chars = reinterpret_cast<const char*>(words.data());
  const std::size_t length = static_cast<std::size_t>(std::find(chars, chars + words.size() * 4, '\0') - chars);
  if (used) *used = std::min(length / 4 + 1, words.size());
  return {chars, length};
}

Status Declarations::element(const Instruction& i, std::size_t count, DType dtype) {
  TOSAIC_CHECK(at_least(i, count));
  TOSAIC_TRY(const Id id, fresh(i, 0));
  types_[id].kind = Type::Kind::element;
  types_[id].dtype = dtype;
  return {};
}

Status Declarations::integer_type(const Instruction& i) {
  TOSAIC_CHECK(at_least(i, 2));
  switch (i.operands[1]) {
    case 8: return element(i, 3, DType::i8);
    case 16: return element(i, 3, DType::i16);
    case 32: return element(i, 3, DType::i32);
    case 64: return element(i, 3, DType::i48);
    default: return corrupt(i.at, "an integer of {} bits", i.operands[1]);
  }
}

Status Declarations::float_type(const Instruction& i) {
  TOSAIC_CHECK(at_least(i, 2));
  const std::optional<FloatEncoding> encoding =
      i.operands.size() > 2 ? std::optional(static_cast<FloatEncoding>(i.operands[2])) : std::nullopt;
  const Word bits = i.operands[1];
  if (!encoding && bits == 16) return element(i, 2, DType::f16);
  if (!encoding && bits == 32) return element(i, 2, DType::f32);
  if (encoding == FloatEncoding::bfloat16 && bits == 16) return element(i, 2, DType::bf16);
  if (encoding == FloatEncoding::float8_e4m3 && bits == 8) return element(i, 2, DType::f8e4m3);
  if (encoding == FloatEncoding::float8_e5m2 && bits == 8) return element(i, 2, DType::f8e5m2);
  return corrupt(i.at, "a float of {} bits that TOSA does not have", bits);
}

Status Declarations::tensor_type(const Instruction& i) {
  TOSAIC_TRY(const Type* of, type(i, 1, Type::Kind::element));
  const DType dtype = of->dtype;
  TOSAIC_TRY(const Id id, fresh(i, 0));
  if (i.operands.size() < 4)
    return error("spirv.dynamic", fmt::format("word {}: a tensor type without a shape", i.at))
        .hint("tosaic runs modules with fixed shapes");
  TOSAIC_TRY(const std::vector<std::int64_t> dims, numbers(i.at, i.operands[3]));
  std::int64_t bytes = static_cast<std::int64_t>(storage_size(dtype));
  for (std::int64_t d : dims) {
    if (d < 1 || d > 0x7fffffff || bytes > most_tensor_bytes / d)
      return corrupt(i.at, "a tensor type with a dim of {}, or too many elements", d);
    bytes *= d;
  }
  types_[id].kind = Type::Kind::tensor;
  types_[id].dtype = dtype;
  types_[id].shape = Shape(dims);
  return {};
}

Status Declarations::add_constant(const Instruction& i) {
  TOSAIC_TRY(const Id id, fresh(i, 1));
  Constant c{Constant::Kind::scalar, i.operands[0], 0, {}};
  const std::span<const Word> rest = i.operands.subspan(2);
  switch (i.opcode) {
    case Opcode::constant_true: c.bits = 1; break;
    case Opcode::constant_false: break;
    case Opcode::constant:
      TOSAIC_CHECK(at_least(i, 3));
      c.bits = rest[0] | (rest.size() > 1 ? static_cast<std::uint64_t>(rest[1]) << 32 : 0);
      break;
    case Opcode::constant_null: c.kind = Constant::Kind::null; break;
    case Opcode::graph_constant:
      TOSAIC_CHECK(at_least(i, 3));
      c.kind = Constant::Kind::outside;
      c.bits = rest[0];
      break;
    default:
      TOSAIC_CHECK(at_least(i, 3));
      c.kind = i.opcode == Opcode::constant_composite ? Constant::Kind::composite : Constant::Kind::replicated;
      c.parts.assign(rest.begin(), rest.end());
      for (Id part : c.parts)
        if (!constants_.contains(part)) return corrupt(i.at, "id {} is no constant", part);
  }
  constants_.emplace(id, std::move(c));
  return {};
}

Result<const Declarations::Constant*> Declarations::constant(std::size_t at, Id id) const {
  const auto found = constants_.find(id);
  if (found == constants_.end()) return corrupt(at, "id {} is no constant", id);
  return &found->second;
}

Status Declarations::elements(std::size_t at, Id id, DType dtype, std::int64_t count, std::vector<std::byte>& data,
                              int depth) const {
  TOSAIC_TRY(const Constant* found, constant(at, id));
  const Constant& c = *found;
  const std::size_t size = storage_size(dtype);
  if (depth > deepest_constant || count > most_inline_bytes / static_cast<std::int64_t>(size))
    return corrupt(at, "constant {} is nested too deep or too large", id);
  switch (c.kind) {
    case Constant::Kind::outside: return corrupt(at, "id {} must be a constant of the module itself", id);
    case Constant::Kind::null: data.resize(data.size() + static_cast<std::size_t>(count) * size); return {};
    case Constant::Kind::scalar: {
      if (count != 1) return corrupt(at, "a scalar where {} elements are needed", count);
      const auto* bits = reinterpret_cast<const std::byte*>(&c.bits);
      data.insert(data.end(), bits, bits + size);
      return {};
    }
    case Constant::Kind::replicated: {
      const std::size_t start = data.size();
      TOSAIC_CHECK(elements(at, c.parts[0], dtype, 1, data, depth + 1));
      for (std::int64_t k = 1; k < count; ++k)
        data.insert(data.end(), data.begin() + static_cast<std::ptrdiff_t>(start),
                    data.begin() + static_cast<std::ptrdiff_t>(start + size));
      return {};
    }
    case Constant::Kind::composite: {
      const auto parts = static_cast<std::int64_t>(c.parts.size());
      if (count % parts) return corrupt(at, "{} parts for {} elements", parts, count);
      for (Id part : c.parts) TOSAIC_CHECK(elements(at, part, dtype, count / parts, data, depth + 1));
      return {};
    }
  }
  return {};
}

Result<std::vector<std::int64_t>> Declarations::numbers(std::size_t at, Id id) const {
  TOSAIC_TRY(const Constant* found, constant(at, id));
  auto count = static_cast<std::int64_t>(found->parts.size());
  if (const auto t = types_.find(found->type); t != types_.end() && t->second.kind == Type::Kind::tensor)
    count = t->second.shape.elements();
  if (count > 64) return corrupt(at, "a list of {} numbers", count);
  std::vector<std::byte> data;
  TOSAIC_CHECK(elements(at, id, DType::i32, count, data));
  std::vector<std::int64_t> list;
  for (std::size_t k = 0; k < data.size(); k += 4) {
    std::int32_t value;
    std::memcpy(&value, data.data() + k, 4);
    list.push_back(value);
  }
  return list;
}

Result<std::int64_t> Declarations::number(std::size_t at, Id id) const {
  std::vector<std::byte> data;
  TOSAIC_CHECK(elements(at, id, DType::i32, 1, data));
  std::int32_t value;
  std::memcpy(&value, data.data(), 4);
  return value;
}

Result<std::string> Declarations::byte_text(std::size_t at, Id id) const {
  TOSAIC_TRY(const Constant* found, constant(at, id));
  TOSAIC_TRY(const Type* array, type(at, found->type, Type::Kind::array));
  if (array->members.size() < 2) return corrupt(at, "an array type without a length");
  TOSAIC_TRY(const std::int64_t length, number(at, array->members[1]));
  if (length < 1 || length > most_text_bytes) return corrupt(at, "a text of {} bytes", length);
  std::vector<std::byte> bytes;
  TOSAIC_CHECK(elements(at, id, DType::i8, length, bytes));
  if (bytes.size() == 1 && bytes[0] == std::byte{0}) return std::string();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace tosaic::spirv
