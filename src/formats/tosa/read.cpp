// SPDX-License-Identifier: Apache-2.0
// Reading a .tosa file: first the flatbuffers verifier (every offset inside the file), then the version, then names,
// types and sizes, so that nothing after this trusts the file.
#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <unordered_map>

#include "formats/tosa/attributes.h"
#include "formats/tosa/elements.h"
#include "formats/tosa/known_shape.h"
#include "formats/tosa/location.h"
#include "formats/tosa/tosa_file.h"
#include "formats/tosa_080/tosa_080.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa_file {
namespace {

// Is it one element of `size` bytes again and again?
bool repeats(const Bytes& bytes, std::size_t size) {
  return bytes.size() % size == 0 && std::equal(bytes.data() + size, bytes.data() + bytes.size(), bytes.data());
}

bool only_zeros(const Bytes& bytes, std::size_t from) {
  return std::all_of(bytes.data() + from, bytes.data() + bytes.size(), [](std::byte b) { return b == std::byte{0}; });
}

using tosa_schema::TosaBasicBlock;
using tosa_schema::TosaOperator;
using tosa_schema::TosaShape;
using tosa_schema::TosaTensor;
using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

constexpr int max_nesting = 16;                               // control flow within control flow
constexpr std::int64_t max_elements = std::int64_t{1} << 58;  // as ir verify
const char* const version_help = "export it again for TOSA 1.0";
constexpr std::string_view block_size = "block_size";

template <class T>
std::uint32_t size_of(const T* list) {
  return list ? list->size() : 0;
}
std::string text_of(const tosa_schema::Version& v) {
  return fmt::format("{}.{}.{}{}", v._major(), v._minor(), v._patch(), v._draft() ? " (draft)" : "");
}
// Of a table that has been verified: is a field set that comes after this slot?
bool has_field_behind(const flatbuffers::Table& table, flatbuffers::voffset_t last) {
  const auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(table.GetVTable());
  for (int slot = last + 2; slot < size; slot += 2)
    if (table.GetOptionalFieldOffset(static_cast<flatbuffers::voffset_t>(slot)) != 0) return true;
  return false;
}
// The slot of the last field of an operator's attribute table; that before the first where it has none.
flatbuffers::voffset_t last_field(std::uint16_t number) {
  const auto fields = fields_of(number);
  return fields.empty() ? flatbuffers::voffset_t{2} : fields.back().slot;
}
std::string text_of(const flatbuffers::String* text) { return text ? text->str() : std::string(); }

class Reader {
 public:
  Reader(const Bytes& file, const std::string& name, const FindOutside& outside)
      : file_(file), name_(name), outside_(outside), budget_(file.size() / 4 + 64) {}

  Result<Graph> read() {
    auto graph = checked();
    if (!graph.ok() && graph.error().place.file.empty()) graph.error().place.file = name_;
    return graph;
  }

 private:
  Result<Graph> checked() {
    TOSAIC_TRY(root_, root());
    if (size_of(root_->regions()) == 0) return error("tosa-file.empty", "the file holds no region");
    const auto* main = region_named("main");
    if (!main) main = root_->regions()->Get(0);
    if (size_of(main->blocks()) == 0) return error("tosa-file.empty", "the main region holds no block");
    const TosaBasicBlock& first = *main->blocks()->Get(0);
    // A table whose fields have gone looks like one that has none.
    if (size_of(first.outputs()) == 0 && !writes_variables(first))
      return error("tosa-file.empty", "the main block has no outputs and writes no variables");
    TOSAIC_TRY(Graph graph, block(first, main, 0));
    TOSAIC_CHECK(verify(graph));
    return graph;
  }

  static bool writes_variables(const TosaBasicBlock& block) {
    for (std::uint32_t i = 0; i < size_of(block.operators()); ++i)
      if (block.operators()->Get(i)->attribute_type() == tosa_schema::Attribute::VariableWriteAttribute) return true;
    return false;
  }

  Result<const tosa_schema::TosaGraph*> root() {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file_.data());
    // Files above 2 GB keep their constants behind the flatbuffer, whose own offsets have 31 usable bits.
    const std::size_t buffer_size = std::min<std::size_t>(file_.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
    if (file_.size() < 8 || !flatbuffers::BufferHasIdentifier(bytes, tosa_schema::TosaGraphIdentifier()))
      return error("tosa-file.not-tosa", "this is not a TOSA flatbuffer (bytes 4 to 7 must be 'TOSA')");
    if (reinterpret_cast<std::uintptr_t>(bytes) % 8 != 0) {  // the verifier checks alignment in memory
      file_ = Bytes::copy(bytes, file_.size());
      bytes = reinterpret_cast<const std::uint8_t*>(file_.data());
    }
    auto broken = [] { return error("tosa-file.corrupt", "an offset or a length points outside the file"); };
    // A table takes at least four bytes, so a file with more tables than that repeats the same ones to waste time.
    const auto max_tables = static_cast<flatbuffers::uoffset_t>(buffer_size / 4 + 16);
    flatbuffers::Verifier verifier(bytes, buffer_size, 64, max_tables);
    // The version comes first: in other versions the same slots mean other things.
    if (!verifier.VerifyOffset(0)) return broken();
    const auto* table = flatbuffers::GetRoot<flatbuffers::Table>(bytes);
    constexpr auto version_slot = tosa_schema::TosaGraph::VT_VERSION;
    if (!table->VerifyTableStart(verifier) || !table->VerifyOffset(verifier, version_slot)) return broken();
    const auto* version = table->GetPointer<const tosa_schema::Version*>(version_slot);
    if (!version) return error("tosa-file.version", "the file states no TOSA version").hint(version_help);
    if (!version->Verify(verifier)) return broken();
    TOSAIC_CHECK(check_version(*version));
    flatbuffers::Verifier whole(bytes, buffer_size, 64, max_tables);
    if (!tosa_schema::VerifyTosaGraphBuffer(whole)) return broken();
    const tosa_schema::TosaGraph* graph = tosa_schema::GetTosaGraph(bytes);
    TOSAIC_CHECK(check_conditions(*graph));
    return graph;
  }

  // What the writer demands of readers: a release of the format's library that knows all that the file uses, and
  // features of it, which files that can be read here have none of. Fields behind those of TOSA 1.1 are further
  // demands, unknown here.
  static Status check_conditions(const tosa_schema::TosaGraph& graph) {
    const auto refused = [&](const std::string& what) {
      return error("tosa-file.version", fmt::format("the file is TOSA {} and {}", text_of(*graph.version()), what))
          .hint(std::string("look for a newer tosaic, or ") + version_help);
    };
    const auto as_table = [](const auto& part) { return reinterpret_cast<const flatbuffers::Table*>(&part); };
    const auto* demands = graph.compatibility();
    if (has_field_behind(*as_table(graph), tosa_schema::TosaGraph::VT_COMPATIBILITY) ||
        (demands && has_field_behind(*as_table(*demands), tosa_schema::Compatibility::VT_FEATURES)))
      return refused("states conditions for its readers that are not known here");
    if (demands && demands->features() != 0)
      return refused(demands->features() == 2
                         ? "holds elements and their scales in one tensor, which is not supported"
                         : fmt::format("needs features numbered {:#x} that are not known here", demands->features()));
    const auto* least = demands ? demands->minimum_reader_version() : nullptr;
    constexpr std::pair known{2026, 8};  // the release whose schema this is
    if (least && std::pair(least->_major(), least->_minor()) > known)
      return refused(fmt::format("asks for readers of its format's release {}.{} or later, where {}.{} is known",
                                 least->_major(), least->_minor(), known.first, known.second));
    return {};
  }

  // 1.0 and 1.1, whose numbers agree wherever a file holds nothing newer; drafts too, since the schema's default is
  // "draft" and the conformance generator leaves it so in its 1.0.1 files.
  static Status check_version(const tosa_schema::Version& version) {
    const int major = version._major(), minor = version._minor();
    if (major == 1 && (minor == 0 || minor == 1)) return {};
    return error("tosa-file.version", fmt::format("the file is TOSA {}, which cannot be read", text_of(version)))
        .hint(std::string(major >= 1 ? "look for a newer tosaic, or " : "") + version_help);
  }

  Result<Graph> block(const TosaBasicBlock& block, const tosa_schema::TosaRegion* region, int depth) {
    if (depth > max_nesting)
      return error("tosa-file.nesting", fmt::format("control flow is nested more than {} deep", max_nesting));
    Scope scope{text_of(block.name()), region, depth};
    scope.graph.name = scope.name;
    for (std::uint32_t i = 0; i < size_of(block.tensors()); ++i) {
      const auto* tensor = block.tensors()->Get(i);
      if (!scope.tensors.emplace(text_of(tensor->name()), tensor).second) return twice(text_of(tensor->name()));
    }
    for (std::uint32_t i = 0; i < size_of(block.shapes()); ++i) {
      const auto* shape = block.shapes()->Get(i);
      const std::string name = text_of(shape->name());
      if (scope.tensors.contains(name) || !scope.shapes.emplace(name, shape).second) return twice(name);
    }
    if (depth == 0) TOSAIC_CHECK(declare_variables(scope, block));
    for (std::uint32_t i = 0; i < size_of(block.inputs()); ++i) {
      TOSAIC_TRY(ValueId v, define(scope, block.inputs()->Get(i)->str(), false));
      scope.graph.inputs.push_back(v);
    }
    for (std::uint32_t i = 0; i < size_of(block.operators()); ++i) {
      Status status = operation(scope, *block.operators()->Get(i));
      if (!status.ok()) {
        status.error().notes.push_back(fmt::format("in operator {} of block '{}'", i, scope.name));
        return std::move(status.error());
      }
    }
    for (std::uint32_t i = 0; i < size_of(block.outputs()); ++i) {
      TOSAIC_TRY(ValueId v, use(scope, block.outputs()->Get(i)->str(), "an output of the graph"));
      scope.graph.outputs.push_back(v);
    }
    return std::move(scope.graph);
  }

  struct Scope {
    std::string name;
    const tosa_schema::TosaRegion* region;
    int depth;
    Graph graph;
    std::unordered_map<std::string, const TosaTensor*> tensors;
    std::unordered_map<std::string, const TosaShape*> shapes;
    std::unordered_map<std::string, ValueId> defined;
  };

  // Every block lists the variables that it touches; they are declared once, at the head of the main graph.
  Status declare_variables(Scope& scope, const TosaBasicBlock& block) {
    std::set<std::string> names;
    for (std::uint32_t i = 0; i < size_of(block.tensors()); ++i) {
      const TosaTensor& tensor = *block.tensors()->Get(i);
      if (!tensor.variable()) continue;
      const std::string name = text_of(tensor.variable_name());
      if (!names.insert(name).second)
        return error("tosa-file.variable", fmt::format("two variables are named '{}'", name));
      TOSAIC_TRY(TensorType type, tensor_type(tensor));
      Node node;
      node.op = tosa::op::variable;
      node.attrs = {{"name", name}, {"var_shape", type.shape.sizes()}, {"type", type.dtype}};
      if (size_of(tensor.data()) > 0 || tensor.size() > 0) {
        TOSAIC_TRY(Bytes initial, constant_data(name, type, tensor.data(), tensor.offset(), tensor.size()));
        node.inputs.push_back(scope.graph.add_value(text_of(tensor.name()), type, std::move(initial)));
      }
      scope.graph.nodes.push_back(std::move(node));
    }
    return {};
  }

  // The name of the variable behind the only tensor of a read or write.
  static Result<std::string> variable_named(const Scope& scope, const Strings* list) {
    if (size_of(list) != 1) return error("tosa-file.variable", "a variable is read or written with several tensors");
    const auto tensor = scope.tensors.find(list->Get(0)->str());
    if (tensor == scope.tensors.end() || !tensor->second->variable())
      return error("tosa-file.variable", fmt::format("'{}' is not a variable", list->Get(0)->str()));
    return text_of(tensor->second->variable_name());
  }

  Status variable_access(Scope& scope, const TosaOperator& op, bool read) {
    Node node;
    node.op = read ? tosa::op::variable_read : tosa::op::variable_write;
    node.loc = op.location() ? parse_location(text_of(op.location()->text())) : nullptr;
    TOSAIC_TRY(std::string variable, variable_named(scope, read ? op.inputs() : op.outputs()));
    node.attrs.set("name", std::move(variable));
    const Strings* list = read ? op.outputs() : op.inputs();
    if (size_of(list) != 1) return error("tosa-file.variable", "a variable is read or written with several tensors");
    if (read) {
      TOSAIC_TRY(ValueId v, define(scope, list->Get(0)->str(), false));
      node.outputs = {v};
    } else {
      TOSAIC_TRY(ValueId v, use(scope, list->Get(0)->str(), "the new content of a variable"));
      node.inputs = {v};
    }
    scope.graph.nodes.push_back(std::move(node));
    return {};
  }

  Status operation(Scope& scope, const TosaOperator& op) {
    if (budget_-- == 0) return error("tosa-file.nesting", "control flow nests its subgraphs without end");
    const auto number = static_cast<std::uint32_t>(op.op());
    if (op.op() == tosa_schema::Op::CONST || op.op() == tosa_schema::Op::CONST_SHAPE) {
      if (size_of(op.inputs()) != 0 || size_of(op.outputs()) != 1)
        return error("tosa-file.operator", fmt::format("{} has {} operands and {} results, not 0 and 1",
                                                       op_name(number), size_of(op.inputs()), size_of(op.outputs())));
      auto value = define(scope, op.outputs()->Get(0)->str(), true);
      return value.ok() ? Status() : Status(std::move(value.error()));
    }
    // TOSA's own serializer numbers these as IDENTITY; the attribute tells.
    const auto tag = op.attribute_type();
    if (tag == tosa_schema::Attribute::VariableReadAttribute || tag == tosa_schema::Attribute::VariableWriteAttribute)
      return variable_access(scope, op, tag == tosa_schema::Attribute::VariableReadAttribute);
    if (tag == tosa_schema::Attribute::VariableAttribute) return {};  // declared with the tensor
    Node node;
    node.op = Operator(op_name(number));
    if (!tosa::find(node.op)) return unknown_operator(number);
    node.loc = op.location() ? parse_location(text_of(op.location()->text())) : nullptr;
    for (std::uint32_t i = 0; i < size_of(op.inputs()); ++i) {
      TOSAIC_TRY(ValueId v, use(scope, op.inputs()->Get(i)->str(), "an operand of " + node.op.text()));
      node.inputs.push_back(v);
    }
    TOSAIC_TRY(auto bodies, attributes(scope, op, node));
    if (node.attrs.get_or(block_size, std::int64_t{0}) == 1) without_blocks(node);
    for (const std::string& name : bodies) {
      TOSAIC_TRY(Graph body, body_named(scope, name));
      node.regions.push_back(std::move(body));
    }
    for (std::uint32_t i = 0; i < size_of(op.outputs()); ++i) {
      TOSAIC_TRY(ValueId v, define(scope, op.outputs()->Get(i)->str(), false));
      node.outputs.push_back(v);
    }
    if (computes_shape(node)) return compute_shape(scope.graph, node);
    scope.graph.nodes.push_back(std::move(node));
    return {};
  }

  // Of blocks of one element: tensors without scales, for which 1.1 has other operators as well.
  static void without_blocks(Node& node) {
    if (node.op != tosa::op::reshape_block_scaled && node.op != tosa::op::row_gather_block_scaled) return;
    node.op = node.op == tosa::op::reshape_block_scaled ? tosa::op::reshape : tosa::op::row_gather;
    node.attrs = {};
  }

  static Diagnostic unknown_operator(std::uint32_t number) {
    return error("tosa-file.operator", fmt::format("operator number {} is in neither TOSA 1.0 nor 1.1", number))
        .hint(version_help);
  }

  static Result<std::vector<std::string>> attributes(const Scope& scope, const TosaOperator& op, Node& node) {
    const auto number = static_cast<std::uint16_t>(op.op());
    const auto tag = static_cast<std::uint16_t>(op.attribute_type());
    std::vector<std::string> bodies;
    const bool none = tag == 0 || op.attribute() == nullptr;
    if (none && fields_of(number).empty()) return bodies;
    if (none || tag != number)
      return error("tosa-file.attribute", fmt::format("{} has the attribute table of {}", node.op,
                                                      none || op_name(tag).empty() ? "no operator" : op_name(tag)));
    const DType element = node.inputs.empty() ? DType::i8 : scope.graph[node.inputs[0]].type.dtype;
    if (has_field_behind(*static_cast<const flatbuffers::Table*>(op.attribute()), last_field(number)))
      return error("tosa-file.attribute", fmt::format("{} has an attribute that TOSA does not", node.op))
          .hint(version_help);
    TOSAIC_CHECK(
        read_attributes(*static_cast<const flatbuffers::Table*>(op.attribute()), number, element, node.attrs, bodies));
    if (const tosa::Op* row = tosa::find(node.op)) node.attrs = in_row_order(*row, node.attrs);
    return bodies;
  }

  // The order that every other graph has its attributes in.
  static Attrs in_row_order(const tosa::Op& row, const Attrs& attrs) {
    Attrs ordered;
    for (const tosa::AttrDef& def : row.attrs)
      if (const Attr* attr = attrs.find(def.name)) ordered.set(std::string(def.name), *attr);
    for (const auto& [name, attr] : attrs) ordered.set(name, attr);
    return ordered;
  }

  // A body is a region of its own, or (older writers) a further block of the same region.
  Result<Graph> body_named(const Scope& scope, const std::string& name) {
    if (const auto* region = region_named(name); region && size_of(region->blocks()) > 0)
      return block(*region->blocks()->Get(0), region, scope.depth + 1);
    for (const auto* candidate : *scope.region->blocks())
      if (text_of(candidate->name()) == name) return block(*candidate, scope.region, scope.depth + 1);
    return error("tosa-file.region", fmt::format("there is no region named '{}'", name));
  }

  const tosa_schema::TosaRegion* region_named(std::string_view name) const {
    for (const auto* region : *root_->regions())
      if (text_of(region->name()) == name) return region;
    return nullptr;
  }

  static Result<ValueId> use(const Scope& scope, const std::string& name, const std::string& as) {
    const auto found = scope.defined.find(name);
    if (found != scope.defined.end()) return found->second;
    const bool exists = scope.tensors.contains(name) || scope.shapes.contains(name);
    return error("tosa-file.name",
                 fmt::format("'{}' is used as {} but {}", name, as,
                             exists ? "nothing before it defines it" : "there is no such tensor or shape"));
  }

  Result<ValueId> define(Scope& scope, const std::string& name, bool constant) {
    if (scope.defined.contains(name)) return twice(name);
    TensorType type;
    const flatbuffers::Vector<std::uint8_t>* data = nullptr;
    std::uint64_t offset = 0, size = 0;
    if (const auto tensor = scope.tensors.find(name); tensor != scope.tensors.end()) {
      if (tensor->second->variable())
        return error("tosa-file.variable", fmt::format("'{}' is a variable, and used as an ordinary tensor", name));
      TOSAIC_TRY(type, tensor_type(*tensor->second));
      data = tensor->second->data();
      offset = tensor->second->offset();
      size = tensor->second->size();
    } else if (const auto shape = scope.shapes.find(name); shape != scope.shapes.end()) {
      type = TensorType{DType::shape, {std::int64_t{shape->second->rank()}}};
      data = shape->second->data();
    } else {
      return error("tosa-file.name", fmt::format("there is no tensor or shape named '{}'", name));
    }
    Bytes content;
    if (constant) { TOSAIC_TRY(content, constant_data(name, type, data, offset, size)); }
    const ValueId v = scope.graph.add_value(name, std::move(type), std::move(content));
    scope.defined.emplace(name, v);
    return v;
  }

  static Result<TensorType> tensor_type(const TosaTensor& tensor) {
    const std::string name = text_of(tensor.name());
    const auto dtype = dtype_of(tensor.type());
    if (!dtype || *dtype == DType::shape)
      return error("tosa-file.dtype",
                   fmt::format("tensor '{}' has type number {} {}, which cannot be read for tensors", name,
                               static_cast<std::uint32_t>(tensor.type()), tosa_schema::EnumNameDType(tensor.type())));
    if (tensor.scale_type() != tosa_schema::DType::UNKNOWN)
      return error("tosa-file.dtype", fmt::format("tensor '{}' has the scales of its blocks in it, which is not "
                                                  "supported: they are operands of their own",
                                                  name));
    if (tensor.is_unranked()) return error("tosa-file.dynamic", fmt::format("tensor '{}' has no known rank", name));
    std::vector<std::int64_t> dims;
    std::int64_t elements = 1;
    for (std::uint32_t i = 0; i < size_of(tensor.shape()); ++i) {
      const std::int64_t dim = tensor.shape()->Get(i);
      if (dim < 1)
        return error("tosa-file.dynamic",
                     fmt::format("dimension {} of tensor '{}' is {}: only fixed sizes can be read", i, name, dim))
            .hint("export the model with fixed input sizes");
      if (elements > max_elements / dim)
        return error("tosa-file.size", fmt::format("the number of elements of tensor '{}' overflows", name));
      elements *= dim;
      dims.push_back(dim);
    }
    return TensorType{*dtype, Shape(std::move(dims))};
  }

  Result<Bytes> constant_data(const std::string& name, const TensorType& type,
                              const flatbuffers::Vector<std::uint8_t>* data, std::uint64_t offset,
                              std::uint64_t size) const {
    const std::int64_t elements = type.shape.elements();
    Bytes packed;
    if (size_of(data) > 0) {
      const auto* first = reinterpret_cast<const std::byte*>(data->data());
      packed = file_.slice(static_cast<std::size_t>(first - file_.data()), data->size());
    } else if (size > 0 && offset == 0) {
      TOSAIC_TRY(packed, lying_outside(name, size));
    } else if (size > 0) {  // behind the flatbuffer, in files above 2 GB
      if (offset > file_.size() || size > file_.size() - offset)
        return error("tosa-file.corrupt", fmt::format("the data of constant '{}' lies outside the file", name));
      packed = file_.slice(offset, size);
    }
    // TOSA's own serializer gives a shape of rank 0 the 8 bytes of one that is not there.
    if (type.dtype == DType::shape && elements == 0 && packed.size() == 8) packed = Bytes();
    const std::size_t needed = packed_size(type.dtype, elements);
    // ExecuTorch writes the weights' zero points once per channel under the shape [1].
    if (elements == 1 && packed.size() > needed && repeats(packed, needed)) packed = packed.slice(0, needed);
    // MLIR's serializer pads data with zeros to a multiple of 8 bytes.
    if (packed.size() > needed && packed.size() == (needed + 7) / 8 * 8 && only_zeros(packed, needed))
      packed = packed.slice(0, needed);
    if (packed.size() != needed)
      return error("tosa-file.constant-size", fmt::format("constant '{}' of type {} needs {} bytes and has {}", name,
                                                          to_string(type), needed, packed.size()));
    if (type.dtype == DType::boolean)
      for (std::byte b : std::span(packed.data(), packed.size()))
        if (std::to_integer<int>(b) > 1)
          return error("tosa-file.constant",
                       fmt::format("boolean constant '{}' holds a byte that is neither 0 nor 1", name));
    return unpack(type.dtype, elements, packed);
  }

  Result<Bytes> lying_outside(const std::string& name, std::uint64_t size) const {
    Bytes found = outside_ ? outside_(name) : Bytes();
    if (found.null())
      return error("tosa-file.constant-outside",
                   fmt::format("the {} bytes of constant '{}' lie outside the file, and nobody gives them", size, name))
          .hint(
              "use the .pte that the graph belongs to, and give the data file that was written next to it: --data "
              "FILE.ptd");
    if (found.size() != size)
      return error("tosa-file.constant-size",
                   fmt::format("constant '{}' has {} bytes outside the file, which says {}", name, found.size(), size))
          .hint("use the data files that were written together with the program");
    return found;
  }

  static Diagnostic twice(const std::string& name) {
    return error("tosa-file.name", fmt::format("'{}' is defined twice", name));
  }

  Bytes file_;
  std::string name_;
  const FindOutside& outside_;
  std::uint64_t budget_;  // operators left to read: an honest file has fewer than one per four bytes
  const tosa_schema::TosaGraph* root_ = nullptr;
};

}  // namespace

std::string version_of(const Bytes& file) {
  if (tosa_080::is_080(file)) return "0.80";
  return text_of(*tosa_schema::GetTosaGraph(reinterpret_cast<const std::uint8_t*>(file.data()))->version());
}

std::optional<Diagnostic> newer_version(const Bytes& file, const std::string& name) {
  if (tosa_080::is_080(file)) return std::nullopt;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  if (tosa_schema::GetTosaGraph(bytes)->version()->_minor() == 0) return std::nullopt;
  return warning("tosa-file.newer",
                 fmt::format("{} is TOSA {}: it is read as the draft of 1.1 that tosa-tools 2026.8 writes, and another "
                             "draft may mean something else",
                             name, version_of(file)))
      .at({name, 0, ""})
      .hint(version_help);
}

Result<Graph> read(const Bytes& file, const std::string& name) { return read(file, name, {}); }
Result<Graph> read(const Bytes& file, const std::string& name, const FindOutside& outside) {
  if (tosa_080::is_080(file)) return tosa_080::read(file, name);
  return Reader(file, name, outside).read();
}

}  // namespace tosaic::tosa_file
