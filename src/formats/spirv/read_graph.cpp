// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <cstring>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "formats/spirv/attributes.h"
#include "formats/spirv/graph_module.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::spirv {
namespace {

constexpr std::size_t header_words = 5;
constexpr Word most_ids = 1u << 22;
constexpr std::int64_t most_tensor_bytes = std::int64_t{1} << 40, most_inline_bytes = std::int64_t{1} << 28;
constexpr int deepest_constant = 16;
constexpr std::int64_t most_text_bytes = std::int64_t{1} << 24;

struct Type {
  enum class Kind : std::uint8_t { other, element, array, tensor, structure, pointer, graph } kind = Kind::other;
  DType dtype = DType::i32;  // element, tensor
  Shape shape;               // tensor
  std::vector<Id> members;   // structure; graph: inputs, then outputs; pointer and array: what it holds
  Word inputs = 0;           // graph
};

struct Constant {
  enum class Kind : std::uint8_t { scalar, composite, replicated, null, outside } kind = Kind::scalar;
  Id type = 0;
  std::uint64_t bits = 0;  // scalar; outside: its GraphConstantID
  std::vector<Id> parts;
};

struct Instruction {
  Opcode opcode;
  std::span<const Word> operands;
  std::size_t at;  // word in the module
};

class Reader {
 public:
  Reader(std::span<const Word> words, const std::string& entry,
         const std::vector<std::pair<Word, OutsideConstant>>& outside)
      : words_(words), entry_(entry), outside_(outside) {}

  Result<Graph> read() {
    if (words_.size() < header_words || words_[0] != magic)
      return error("spirv.not-spirv", "the module does not begin with SPIR-V's magic number");
    if (words_[1] > version_1_6)
      return error("spirv.version", fmt::format("the module has SPIR-V version {}.{}, tosaic reads up to 1.6",
                                                words_[1] >> 16, words_[1] >> 8 & 0xff));
    if (words_[3] > most_ids) return error("spirv.corrupt", fmt::format("the module claims {} ids", words_[3]));
    bound_ = words_[3];
    for (std::size_t at = header_words; at < words_.size();) {
      const std::size_t length = words_[at] >> 16;
      if (length == 0 || length > words_.size() - at)
        return corrupt(at, "an instruction of {} words where {} are left", length, words_.size() - at);
      const Instruction i{static_cast<Opcode>(words_[at] & 0xffff), words_.subspan(at + 1, length - 1), at};
      TOSAIC_CHECK(read(i));
      at += length;
    }
    if (!done_) return error("spirv.no-graph", fmt::format("the module holds no graph '{}'", entry_));
    TOSAIC_CHECK(finish());
    return std::move(graph_);
  }

  // Of the graph's inputs, then its outputs; no_binding where the module does not say.
  std::vector<Word> bindings() const {
    std::vector<Word> list;
    for (Id id : interface_) {
      const auto found = bindings_.find(id);
      list.push_back(found == bindings_.end() ? no_binding : found->second);
    }
    return list;
  }

 private:
  template <class... T>
  static Diagnostic corrupt(std::size_t at, fmt::format_string<T...> text, T&&... values) {
    return error("spirv.corrupt", fmt::format("word {}: {}", at, fmt::format(text, std::forward<T>(values)...)));
  }

  // ---- operands
  static Status at_least(const Instruction& i, std::size_t count) {
    if (i.operands.size() >= count) return {};
    return corrupt(i.at, "opcode {} has {} operands, {} are needed", static_cast<unsigned>(i.opcode), i.operands.size(),
                   count);
  }
  Result<Id> fresh(const Instruction& i, std::size_t k) {
    TOSAIC_CHECK(at_least(i, k + 1));
    const Id id = i.operands[k];
    if (id == 0 || id >= bound_) return corrupt(i.at, "id {} is beyond the bound {}", id, bound_);
    if (!defined_.insert({id, i.at}).second) return corrupt(i.at, "id {} is defined twice", id);
    return id;
  }
  Result<const Type*> type(const Instruction& i, std::size_t k, Type::Kind kind) const {
    TOSAIC_CHECK(at_least(i, k + 1));
    return type(i.at, i.operands[k], kind);
  }
  Result<const Type*> type(std::size_t at, Id id, Type::Kind kind) const {
    const auto found = types_.find(id);
    if (found == types_.end() || found->second.kind != kind) return corrupt(at, "id {} is no type that fits here", id);
    return &found->second;
  }
  static std::string text(std::span<const Word> words, std::size_t* used = nullptr) {
    const auto* chars = reinterpret_cast<const char*>(words.data());
    const std::size_t length = static_cast<std::size_t>(std::find(chars, chars + words.size() * 4, '\0') - chars);
    if (used) *used = std::min(length / 4 + 1, words.size());
    return {chars, length};
  }

  // ---- instructions
  Status read(const Instruction& i) {
    switch (i.opcode) {
      case Opcode::name:
        TOSAIC_CHECK(at_least(i, 2));
        names_[i.operands[0]] = text(i.operands.subspan(1));
        return {};
      case Opcode::decorate:
        if (i.operands.size() == 3 && i.operands[1] == decoration_binding) bindings_[i.operands[0]] = i.operands[2];
        return {};
      case Opcode::ext_inst_import: {
        TOSAIC_TRY(const Id id, fresh(i, 0));
        const std::string set = text(i.operands.subspan(1));
        if (set == tosa_set) tosa_ = id;
        if (set == call_set) call_sets_.insert(id);
        return {};
      }
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
      case Opcode::graph_constant: return constant(i);
      case Opcode::graph_entry_point: return entry_point(i);
      case Opcode::graph: return begin(i);
      case Opcode::graph_input: return input(i);
      case Opcode::ext_inst: return instruction(i);
      case Opcode::composite_extract: return extract(i);
      case Opcode::graph_set_output: return set_output(i);
      case Opcode::graph_end:
        done_ |= inside_;
        inside_ = false;
        return {};
      default: return {};  // capabilities, extensions, decorations, debug information
    }
  }

  Status element(const Instruction& i, std::size_t count, DType dtype) {
    TOSAIC_CHECK(at_least(i, count));
    TOSAIC_TRY(const Id id, fresh(i, 0));
    types_[id].kind = Type::Kind::element;
    types_[id].dtype = dtype;
    return {};
  }
  Status integer_type(const Instruction& i) {
    TOSAIC_CHECK(at_least(i, 2));
    switch (i.operands[1]) {
      case 8: return element(i, 3, DType::i8);
      case 16: return element(i, 3, DType::i16);
      case 32: return element(i, 3, DType::i32);
      case 64: return element(i, 3, DType::i48);
      default: return corrupt(i.at, "an integer of {} bits", i.operands[1]);
    }
  }
  Status float_type(const Instruction& i) {
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
  Status tensor_type(const Instruction& i) {
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

  Status constant(const Instruction& i) {
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

  // The elements of a constant, in storage form of `dtype`, appended to `data`; `count` of them.
  Status elements(std::size_t at, Id id, DType dtype, std::int64_t count, std::vector<std::byte>& data,
                  int depth = 0) const {
    const auto found = constants_.find(id);
    if (found == constants_.end()) return corrupt(at, "id {} is no constant", id);
    const Constant& c = found->second;
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
  // A list of 32-bit numbers: the composite of an array or of a rank-1 tensor.
  Result<std::vector<std::int64_t>> numbers(std::size_t at, Id id) const {
    const auto found = constants_.find(id);
    if (found == constants_.end()) return corrupt(at, "id {} is no constant", id);
    std::int64_t count = static_cast<std::int64_t>(found->second.parts.size());
    if (const auto t = types_.find(found->second.type); t != types_.end() && t->second.kind == Type::Kind::tensor)
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
  Result<std::int64_t> number(std::size_t at, Id id) const {
    std::vector<std::byte> data;
    TOSAIC_CHECK(elements(at, id, DType::i32, 1, data));
    std::int32_t value;
    std::memcpy(&value, data.data(), 4);
    return value;
  }

  // ---- the graph
  Status entry_point(const Instruction& i) {
    TOSAIC_CHECK(at_least(i, 2));
    std::size_t used = 0;
    if (text(i.operands.subspan(1), &used) != entry_) return {};
    wanted_ = i.operands[0];
    interface_.assign(i.operands.begin() + 1 + static_cast<std::ptrdiff_t>(used), i.operands.end());
    return {};
  }
  Status begin(const Instruction& i) {
    TOSAIC_CHECK(at_least(i, 2));
    inside_ = i.operands[1] == wanted_;
    if (!inside_) return {};
    TOSAIC_TRY(const Type* t, type(i, 0, Type::Kind::graph));
    if (interface_.size() != t->members.size())
      return corrupt(i.at, "{} interface variables for {} inputs and outputs", interface_.size(), t->members.size());
    for (Word k = 0; k < t->inputs; ++k) {
      TOSAIC_TRY(const Type* of, type(i.at, t->members[k], Type::Kind::tensor));
      graph_.inputs.push_back(value(interface_[k], *of, fmt::format("input_{}", k)));
    }
    graph_.outputs.assign(t->members.size() - t->inputs, no_value);
    graph_.name = entry_;
    return {};
  }
  ValueId value(Id id, const Type& of, const std::string& otherwise) {
    const auto named = names_.find(id);
    return graph_.add_value(named != names_.end() && !named->second.empty() ? named->second : otherwise,
                            {of.dtype, of.shape, std::nullopt});
  }
  Status input(const Instruction& i) {
    if (!inside_) return {};
    TOSAIC_CHECK(at_least(i, 3));
    TOSAIC_TRY(const std::int64_t index, number(i.at, i.operands[2]));
    if (index < 0 || index >= static_cast<std::int64_t>(graph_.inputs.size()))
      return corrupt(i.at, "graph input {} of {}", index, graph_.inputs.size());
    TOSAIC_TRY(const Id id, fresh(i, 1));
    values_[id] = graph_.inputs[static_cast<std::size_t>(index)];
    return {};
  }
  Status set_output(const Instruction& i) {
    if (!inside_) return {};
    TOSAIC_CHECK(at_least(i, 2));
    TOSAIC_TRY(const std::int64_t index, number(i.at, i.operands[1]));
    if (index < 0 || index >= static_cast<std::int64_t>(graph_.outputs.size()))
      return corrupt(i.at, "graph output {} of {}", index, graph_.outputs.size());
    TOSAIC_TRY(graph_.outputs[static_cast<std::size_t>(index)], operand(i.at, i.operands[0], {}));
    return {};
  }

  // The value that an id stands for: computed before, or a constant, made a value when first read. A constant is read
  // as `wanted`: shapes are 32-bit tensors in SPIR-V and lists of their own type in TOSA.
  Result<ValueId> operand(std::size_t at, Id id, std::string_view wanted) {
    const bool is_shape = wanted == name_of(DType::shape);
    if (const auto found = values_.find(id); found != values_.end() && !is_shape) return found->second;
    if (is_shape) {
      TOSAIC_TRY(std::vector<std::int64_t> list, numbers(at, id));
      const auto count = static_cast<std::int64_t>(list.size());
      return graph_.add_value(fmt::format("shape_{}", graph_.values.size()), {DType::shape, {count}, std::nullopt},
                              Bytes::of(std::move(list)));
    }
    const auto found = constants_.find(id);
    if (found == constants_.end()) return corrupt(at, "id {} is neither computed before nor constant", id);
    TOSAIC_TRY(const Type* of, type(at, found->second.type, Type::Kind::tensor));
    const ValueId v = value(id, *of, fmt::format("constant_{}", id));
    if (found->second.kind == Constant::Kind::outside) {
      TOSAIC_TRY(graph_[v].constant, outside(at, static_cast<Word>(found->second.bits), graph_[v].type));
    } else {
      std::vector<std::byte> data;
      TOSAIC_CHECK(elements(at, id, of->dtype, of->shape.elements(), data));
      graph_[v].constant = Bytes::of(std::move(data));
    }
    return values_[id] = v;
  }
  Result<Bytes> outside(std::size_t at, Word number, const TensorType& type) const {
    for (const auto& [id, c] : outside_) {
      if (id != number) continue;
      const auto dims = c.type.shape.rank() ? c.type.shape.sizes() : std::vector<std::int64_t>{1};
      if (storage_size(c.type.dtype) != storage_size(type.dtype) || dims != type.shape.sizes() ||
          c.data.size() != type.storage_bytes())
        return corrupt(at, "graph constant {} is {} with {} bytes, the module takes {}", number, to_string(c.type),
                       c.data.size(), to_string(type));
      return c.data;
    }
    return corrupt(at, "graph constant {} is not among the segment's constants", number);
  }

  Status instruction(const Instruction& i) {
    if (!inside_) return {};
    TOSAIC_CHECK(at_least(i, 4));
    if (call_sets_.contains(i.operands[2])) return call(i);
    if (i.operands[2] != tosa_)
      return error("spirv.instruction-set",
                   fmt::format("word {}: an instruction of another set than {}", i.at, tosa_set));
    const tosa::Op* op = tosa::by_spirv_number(i.operands[3]);
    if (!op) return corrupt(i.at, "{} has no instruction {}", tosa_set, i.operands[3]);
    TOSAIC_CHECK(at_least(i, 4 + op->attrs.size()));
    Node node;
    node.op = Operator(fmt::format("tosa.{}", op->name));
    const auto arguments = i.operands.subspan(4 + op->attrs.size());
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const std::size_t def = std::min(k, op->inputs.size() - 1);
      if (k != def && !op->inputs[def].list) return corrupt(i.at, "{} takes {} tensors", op->name, op->inputs.size());
      TOSAIC_TRY(const ValueId v, operand(i.at, arguments[k], op->inputs[def].type));
      node.inputs.push_back(v);
    }
    if (node.inputs.empty()) return corrupt(i.at, "{} without operands", op->name);
    for (std::size_t k = 0; k < op->attrs.size(); ++k) {
      TOSAIC_TRY(Attr a, attribute(i.at, i.operands[4 + k], op->attrs[k], graph_[node.inputs[0]].type.dtype));
      node.attrs.set(std::string(op->attrs[k].name), std::move(a));
    }
    TOSAIC_CHECK(results(i, node));
    if (node.outputs.size() != op->outputs.size()) return corrupt(i.at, "{} has other results", op->name);
    graph_.nodes.push_back(std::move(node));
    if (op->outputs.size() == 1) as_scalar(i.operands[1]);
    return {};
  }

  // A tensor, or a structure of them.
  Status results(const Instruction& i, Node& node) {
    TOSAIC_TRY(const Id id, fresh(i, 1));
    const std::string name(node.op.base());
    const auto result = types_.find(i.operands[0]);
    if (result != types_.end() && result->second.kind == Type::Kind::structure) {
      for (Id member : result->second.members) {
        TOSAIC_TRY(const Type* part, type(i.at, member, Type::Kind::tensor));
        node.outputs.push_back(value(0, *part, fmt::format("{}_{}_{}", name, id, node.outputs.size())));
      }
      structures_[id] = node.outputs;
      return {};
    }
    TOSAIC_TRY(const Type* of, type(i, 0, Type::Kind::tensor));
    node.outputs.push_back(values_[id] = value(id, *of, fmt::format("{}_{}", name, id)));
    return {};
  }

  // CUSTOM: the number, the operator's name, its attributes, tensors. Without the name that our writer gives to the
  // import only the number tells the domain.
  Status call(const Instruction& i) {
    TOSAIC_CHECK(at_least(i, 7));
    if (i.operands[3] != call_instruction) return corrupt(i.at, "{} has no instruction {}", call_set, i.operands[3]);
    const Word domain_number = i.operands[4];  // a literal
    const auto named = names_.find(i.operands[2]);
    const std::string domain = named != names_.end() ? named->second
                               : domain_number == 0  ? std::string(bespoke_domain)
                                                     : fmt::format("{}:{}", call_set, domain_number);
    Node node;
    node.op = tosa::op::custom;
    TOSAIC_TRY(std::string name, byte_text(i.at, i.operands[5]));
    TOSAIC_TRY(std::string attributes, byte_text(i.at, i.operands[6]));
    node.attrs.set("operator_name", Attr(std::move(name)));
    node.attrs.set("domain_name", Attr(domain));
    node.attrs.set("implementation_attrs", Attr(std::move(attributes)));
    for (Id id : i.operands.subspan(7)) {
      TOSAIC_TRY(const ValueId v, operand(i.at, id, {}));
      node.inputs.push_back(v);
    }
    TOSAIC_CHECK(results(i, node));
    graph_.nodes.push_back(std::move(node));
    return {};
  }
  // An array of 8-bit integers.
  Result<std::string> byte_text(std::size_t at, Id id) const {
    const auto found = constants_.find(id);
    if (found == constants_.end()) return corrupt(at, "id {} is no constant", id);
    TOSAIC_TRY(const Type* array, type(at, found->second.type, Type::Kind::array));
    if (array->members.size() < 2) return corrupt(at, "an array type without a length");
    TOSAIC_TRY(const std::int64_t length, number(at, array->members[1]));
    if (length < 1 || length > most_text_bytes) return corrupt(at, "a text of {} bytes", length);
    std::vector<std::byte> bytes;
    TOSAIC_CHECK(elements(at, id, DType::i8, length, bytes));
    if (bytes.size() == 1 && bytes[0] == std::byte{0}) return std::string();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // A result of rank 0, as ARGMAX has of a list, is [1] in SPIR-V.
  void as_scalar(Id id) {
    const tosa::Spec spec = tosa::Spec::everything();
    const Node node = graph_.nodes.back();
    const ValueId v = node.outputs[0];
    if (graph_[v].type.shape != Shape{1} || !tosa::verify_node({graph_, node}, spec)) return;
    graph_[v].type.shape = Shape{};
    if (tosa::verify_node({graph_, node}, spec)) {
      graph_[v].type.shape = Shape{1};
      return;
    }
    const ValueId shape =
        graph_.add_value("shape", {DType::shape, {1}, std::nullopt}, Bytes::of(std::vector{std::int64_t{1}}));
    const ValueId listed = graph_.add_value(graph_[v].name, {graph_[v].type.dtype, {1}, std::nullopt});
    graph_.nodes.push_back({tosa::op::reshape, {v, shape}, {}, {listed}, nullptr, {}});
    values_[id] = listed;
  }

  Status extract(const Instruction& i) {
    if (!inside_) return {};
    TOSAIC_CHECK(at_least(i, 4));
    const auto found = structures_.find(i.operands[2]);
    if (found == structures_.end() || i.operands[3] >= found->second.size())
      return corrupt(i.at, "part {} of id {} does not exist", i.operands[3], i.operands[2]);
    TOSAIC_TRY(const Id id, fresh(i, 1));
    values_[id] = found->second[i.operands[3]];
    if (const auto named = names_.find(id); named != names_.end()) graph_[values_[id]].name = named->second;
    return {};
  }

  Result<Attr> attribute(std::size_t at, Id id, const tosa::AttrDef& def, DType element_type) const {
    switch (def.kind) {
      case tosa::AttrKind::i32_list: {
        TOSAIC_TRY(std::vector<std::int64_t> list, numbers(at, id));
        return Attr(std::move(list));
      }
      case tosa::AttrKind::number: {
        std::vector<std::byte> data;
        TOSAIC_CHECK(elements(at, id, element_type, 1, data));
        return is_float(element_type) ? Attr(element_as_double(element_type, data.data(), 0))
                                      : Attr(element_as_integer(element_type, data.data(), 0));
      }
      case tosa::AttrKind::boolean: {
        const auto found = constants_.find(id);
        if (found == constants_.end()) return corrupt(at, "id {} is no constant", id);
        return Attr(found->second.bits != 0);
      }
      default: break;
    }
    TOSAIC_TRY(const std::int64_t value, number(at, id));
    if (def.kind == tosa::AttrKind::i32) return Attr(value);
    const auto names = names_of(def.kind);
    if (def.kind == tosa::AttrKind::dtype) {
      if (value >= 1 && value <= static_cast<std::int64_t>(accumulators.size()))
        return Attr(accumulators[static_cast<std::size_t>(value - 1)]);
    } else if (value >= 1 && value <= static_cast<std::int64_t>(names.size()) &&
               !names[static_cast<std::size_t>(value - 1)].empty()) {
      return Attr(std::string(names[static_cast<std::size_t>(value - 1)]));
    }
    return corrupt(at, "{} is {}, which is none of its values", def.name, value);
  }

  Status finish() {
    for (std::size_t k = 0; k < graph_.outputs.size(); ++k)
      if (graph_.outputs[k] == no_value)
        return error("spirv.corrupt", fmt::format("graph '{}' never sets its output {}", entry_, k));
    make_names_unique(graph_);
    return {};
  }

  const std::span<const Word> words_;
  const std::string& entry_;
  const std::vector<std::pair<Word, OutsideConstant>>& outside_;
  std::map<Id, Type> types_;
  std::map<Id, std::size_t> defined_;
  std::map<Id, Constant> constants_;
  std::map<Id, std::string> names_;
  std::map<Id, Word> bindings_;
  std::map<Id, ValueId> values_;
  std::map<Id, std::vector<ValueId>> structures_;
  std::vector<Id> interface_;
  Id tosa_ = 0, wanted_ = 0, bound_ = 0;
  std::set<Id> call_sets_;
  bool inside_ = false, done_ = false;
  Graph graph_;
};

}  // namespace

Result<Graph> read_graph(std::span<const Word> words, const std::string& entry_point,
                         const std::vector<std::pair<Word, OutsideConstant>>& constants, std::vector<Word>* bindings) {
  Reader reader(words, entry_point, constants);
  auto graph = reader.read();
  if (bindings) *bindings = reader.bindings();
  return graph;
}

}  // namespace tosaic::spirv
