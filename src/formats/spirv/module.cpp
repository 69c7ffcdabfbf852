// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/module.h"

#include <algorithm>
#include <cstring>

namespace tosaic::spirv {
namespace {

constexpr Word logical_addressing = 0, vulkan_memory = 3;

std::vector<std::int64_t> dims_of(const Shape& shape) {
  return shape.rank() == 0 ? std::vector<std::int64_t>{1} : shape.sizes();
}

bool all_zero(const std::byte* data, std::size_t size) {
  return std::all_of(data, data + size, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::vector<Word> literal(std::string_view text) {
  std::vector<Word> words(text.size() / 4 + 1, 0);
  std::memcpy(words.data(), text.data(), text.size());
  return words;
}

Module::Module() {
  for (Capability c : {Capability::matrix, Capability::shader, Capability::int8, Capability::tensors, Capability::graph,
                       Capability::vulkan_memory_model})
    capabilities_.insert(static_cast<Word>(c));
  extensions_ = {"SPV_ARM_graph", "SPV_ARM_tensors", "SPV_KHR_vulkan_memory_model"};
  tosa_ = instructions(tosa_set);
}

void Module::put(Words& section, Opcode opcode, const Words& operands) {
  section.push_back(static_cast<Word>(operands.size() + 1) << 16 | static_cast<Word>(opcode));
  section.insert(section.end(), operands.begin(), operands.end());
}

void Module::require(Capability capability, const char* extension) {
  capabilities_.insert(static_cast<Word>(capability));
  if (extension) extensions_.insert(extension);
}

Id Module::global(Opcode opcode, Words operands, bool typed) {
  Words key = operands;
  key.push_back(static_cast<Word>(opcode));
  const auto [found, added] = interned_.try_emplace(std::move(key), next_);
  if (!added) return found->second;
  operands.insert(operands.begin() + (typed ? 1 : 0), fresh());
  put(globals_, opcode, operands);
  return found->second;
}

Id Module::element(DType type) {
  auto integers = [&](Word bits) { return global(Opcode::type_int, {bits, 0}, false); };
  auto floats = [&](Word bits) { return global(Opcode::type_float, {bits}, false); };
  auto encoded = [&](Word bits, FloatEncoding e) {
    return global(Opcode::type_float, {bits, static_cast<Word>(e)}, false);
  };
  switch (type) {
    case DType::boolean: return global(Opcode::type_bool, {}, false);
    case DType::i4:  // widened: SPIR-V has no narrower integer, and the arithmetic is the same
    case DType::i8:
    case DType::u8: return integers(8);
    case DType::i16: require(Capability::int16); return integers(16);
    case DType::shape:  // narrowed: the instruction set takes 32-bit shapes
    case DType::i32: return integers(32);
    case DType::i48:
    case DType::i64: require(Capability::int64); return integers(64);
    case DType::f16: require(Capability::float16); return floats(16);
    case DType::f32: return floats(32);
    case DType::f64: return floats(64);
    case DType::bf16: require(Capability::bfloat16, "SPV_KHR_bfloat16"); return encoded(16, FloatEncoding::bfloat16);
    case DType::f8e4m3: require(Capability::float8, "SPV_EXT_float8"); return encoded(8, FloatEncoding::float8_e4m3);
    case DType::f8e5m2: require(Capability::float8, "SPV_EXT_float8"); return encoded(8, FloatEncoding::float8_e5m2);
    case DType::f4e2m1:  // the graph is of TOSA 1.0
    case DType::f6e2m3:
    case DType::f6e3m2:
    case DType::mxint8:
    case DType::f8ue8m0: break;
  }
  return 0;
}

Id Module::tensor(DType type, const Shape& shape) {
  const std::vector<std::int64_t> dims = dims_of(shape);
  const Id rank = integer(static_cast<std::uint32_t>(dims.size()));
  Words extents{global(Opcode::type_array, {element(DType::i32), rank}, false)};
  for (std::int64_t d : dims) extents.push_back(integer(static_cast<std::uint32_t>(d)));
  const Id extent = global(Opcode::constant_composite, std::move(extents), true);
  return global(Opcode::type_tensor, {element(type), rank, extent}, false);
}

Id Module::structure(std::vector<Id> members) { return global(Opcode::type_struct, std::move(members), false); }

Id Module::graph_type(std::uint32_t inputs, std::vector<Id> types) {
  types.insert(types.begin(), inputs);
  return global(Opcode::type_graph, std::move(types), false);
}

Id Module::integer(std::uint32_t value) { return global(Opcode::constant, {element(DType::i32), value}, true); }

Id Module::text(std::string_view bytes) {
  const std::string_view all = bytes.empty() ? std::string_view("\0", 1) : bytes;
  const Id size = integer(static_cast<std::uint32_t>(all.size()));
  Words operands{global(Opcode::type_array, {element(DType::i8), size}, false)};
  for (const char& c : all) operands.push_back(scalar(DType::i8, &c));
  return global(Opcode::constant_composite, std::move(operands), true);
}

Id Module::boolean(bool value) {
  return global(value ? Opcode::constant_true : Opcode::constant_false, {element(DType::boolean)}, true);
}

Id Module::scalar(DType type, const void* element_data) {
  if (type == DType::boolean) return boolean(*static_cast<const std::uint8_t*>(element_data) != 0);
  if (type == DType::shape) {
    std::int64_t wide = 0;
    std::memcpy(&wide, element_data, sizeof(wide));
    return integer(static_cast<std::uint32_t>(wide));
  }
  std::uint64_t bits = 0;  // narrow types in the low bits, the rest zero
  std::memcpy(&bits, element_data, storage_size(type));
  Words operands{element(type), static_cast<Word>(bits)};
  if (storage_size(type) == 8) operands.push_back(static_cast<Word>(bits >> 32));
  return global(Opcode::constant, std::move(operands), true);
}

Id Module::list(const std::vector<std::int64_t>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const Bytes elements = Bytes::of(values);
  if (all_zero(elements.data(), elements.size())) return tensor_constant(DType::shape, shape, elements);
  // Spelled out even where all are equal: short, and a module without other constants of one value then needs no
  // extension.
  return nested(DType::shape, shape.sizes(), 0, elements.data());
}

Id Module::nested(DType type, const std::vector<std::int64_t>& dims, std::size_t level, const std::byte* elements) {
  std::int64_t inner = 1;
  for (std::size_t i = level + 1; i < dims.size(); ++i) inner *= dims[i];
  const std::size_t step = static_cast<std::size_t>(inner) * storage_size(type);
  Words operands{tensor(type, Shape(std::vector(dims.begin() + static_cast<std::ptrdiff_t>(level), dims.end())))};
  for (std::int64_t i = 0; i < dims[level]; ++i) {
    const std::byte* part = elements + static_cast<std::size_t>(i) * step;
    operands.push_back(level + 1 == dims.size() ? scalar(type, part) : nested(type, dims, level + 1, part));
  }
  return global(Opcode::constant_composite, std::move(operands), true);
}

bool Module::is_uniform(DType type, const Bytes& elements) const {
  const std::size_t size = storage_size(type);
  if (all_zero(elements.data(), elements.size())) return true;
  return replicates_ && std::memcmp(elements.data(), elements.data() + size, elements.size() - size) == 0;
}

Id Module::tensor_constant(DType type, const Shape& shape, const Bytes& elements) {
  if (all_zero(elements.data(), elements.size())) return global(Opcode::constant_null, {tensor(type, shape)}, true);
  if (elements.size() > storage_size(type) && is_uniform(type, elements)) {
    require(Capability::replicated_composites, "SPV_EXT_replicated_composites");
    return global(Opcode::constant_composite_replicate, {tensor(type, shape), scalar(type, elements.data())}, true);
  }
  return nested(type, dims_of(shape), 0, elements.data());
}

Id Module::graph_constant(Id tensor_type, std::uint32_t number) {
  return global(Opcode::graph_constant, {tensor_type, number}, true);
}

Id Module::instructions(std::string_view set) {
  Words import = literal(set);
  import.insert(import.begin(), fresh());
  put(imports_, Opcode::ext_inst_import, import);
  return import[0];
}

Id Module::variable(Id tensor_type, std::uint32_t binding) {
  const Id pointer = global(Opcode::type_pointer, {storage_uniform_constant, tensor_type}, false);
  const Id id = fresh();
  put(globals_, Opcode::variable, {pointer, id, storage_uniform_constant});
  put(decorations_, Opcode::decorate, {id, decoration_binding, binding});
  put(decorations_, Opcode::decorate, {id, decoration_descriptor_set, 0});
  return id;
}

void Module::name(Id id, std::string_view text) {
  Words operands = literal(text);
  operands.insert(operands.begin(), id);
  put(names_, Opcode::name, operands);
}

void Module::entry_point(Id graph, std::string_view name, const std::vector<Id>& interface) {
  Words operands = literal(name);
  operands.insert(operands.begin(), graph);
  operands.insert(operands.end(), interface.begin(), interface.end());
  put(entry_points_, Opcode::graph_entry_point, operands);
}

void Module::body(Opcode opcode, const std::vector<Word>& operands) { put(body_, opcode, operands); }

std::vector<Word> Module::words() const {
  Words all{magic, version_1_5, 0, next_, 0};
  for (Word c : capabilities_) put(all, Opcode::capability, {c});
  for (const std::string& e : extensions_) put(all, Opcode::extension, literal(e));
  all.insert(all.end(), imports_.begin(), imports_.end());
  put(all, Opcode::memory_model, {logical_addressing, vulkan_memory});
  for (const Words* section : {&names_, &decorations_, &globals_, &entry_points_, &body_})
    all.insert(all.end(), section->begin(), section->end());
  return all;
}

}  // namespace tosaic::spirv
