// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "formats/spirv/graph/attributes.h"
#include "formats/spirv/graph/declarations.h"
#include "formats/spirv/graph/graph_module.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::spirv {
namespace {

constexpr std::size_t header_words = 5;
constexpr Word most_ids = 1u << 22;

class Reader : Declarations {
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
  // ---- instructions
  Status read(const Instruction& i) {
    switch (i.opcode) {
      case Opcode::ext_inst_import: {
        TOSAIC_TRY(const Id id, fresh(i, 0));
        const std::string set = text(i.operands.subspan(1));
        if (set == tosa_set) tosa_ = id;
        if (set == call_set) call_sets_.insert(id);
        return {};
      }
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
      default: return declare(i);
    }
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
        TOSAIC_TRY(const Constant* found, constant(at, id));
        return Attr(found->bits != 0);
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
  std::map<Id, ValueId> values_;
  std::map<Id, std::vector<ValueId>> structures_;
  std::vector<Id> interface_;
  Id tosa_ = 0, wanted_ = 0;
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
