// SPDX-License-Identifier: Apache-2.0
#include "pack/core_form.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "ir/tensor.h"
#include "kernels/out_variant.h"
#include "lower/lower.h"
#include "ops/op.h"
#include "pack/executorch_kernels.h"

namespace tosaic::packing {
namespace {

using Ints = std::vector<std::int64_t>;

// A call being respelled: arguments by name, defaults filled in.
struct Respelling {
  Graph& graph;
  const Node& node;
  const Schema& schema;

  const Attr& attr(std::string_view name) const {
    static const Attr none;
    if (const Attr* a = node.attrs.find(name)) return *a;
    const SchemaArgument* argument = schema.argument(name);
    return argument ? argument->default_value : none;
  }
  bool has(std::string_view name) const { return !std::holds_alternative<std::monostate>(attr(name)); }
  std::int64_t integer(std::string_view name) const {
    const auto* i = std::get_if<std::int64_t>(&attr(name));
    return i ? *i : 0;
  }
  // A list, or one number for all of `count` dims.
  Ints ints(std::string_view name, std::size_t count) const {
    Ints list;
    if (const auto* l = std::get_if<Ints>(&attr(name))) list = *l;
    if (const auto* i = std::get_if<std::int64_t>(&attr(name))) list = {*i};
    if (list.size() == 1) list.resize(count, list[0]);
    return list;
  }
  const TensorType& in(std::size_t i) const { return graph[node.inputs[i]].type; }
  const TensorType& out() const { return graph[node.outputs[0]].type; }
  bool given(std::size_t i) const { return i < node.inputs.size() && node.inputs[i] != no_value; }
  ValueId operand(std::size_t i) const { return given(i) ? node.inputs[i] : no_value; }

  Node call(std::string op, std::vector<ValueId> inputs, Attrs attrs = {}) const {
    return {std::move(op), std::move(inputs), std::move(attrs), node.outputs, node.loc, {}};
  }
  // A result that nobody wants but the kernel writes.
  void result(Node& made, DType dtype, Shape shape) const {
    std::string name = fmt::format("{}.result{}", graph[node.outputs[0]].name, made.outputs.size());
    made.outputs.push_back(graph.add_value(std::move(name), {dtype, std::move(shape), {}}));
  }
};

std::optional<Node> convolution(const Respelling& r) {
  const std::string& name = r.schema.name;
  const bool transposed = name.starts_with("conv_transpose");
  if (!transposed && name != "conv1d" && name != "conv2d" && name != "conv3d") return std::nullopt;
  const auto dims = static_cast<std::size_t>(name.back() == 'd' ? name[name.size() - 2] - '0' : 0);
  if (r.in(0).rank() != static_cast<int>(dims) + 2) return std::nullopt;  // without a batch dim
  Ints padding = r.ints("padding", dims);
  if (const auto* text = std::get_if<std::string>(&r.attr("padding"))) {
    padding.assign(dims, 0);
    const Ints dilation = r.ints("dilation", dims);
    for (std::size_t d = 0; *text == "same" && d < dims; ++d) {
      const std::int64_t total = dilation[d] * (r.in(1).shape[static_cast<int>(d) + 2] - 1);
      if (total % 2 != 0) return std::nullopt;  // convolution pads both sides alike
      padding[d] = total / 2;
    }
  }
  return r.call("aten.convolution.default", {r.operand(0), r.operand(1), r.operand(2)},
                {{"stride", r.ints("stride", dims)},
                 {"padding", padding},
                 {"dilation", r.ints("dilation", dims)},
                 {"transposed", transposed},
                 {"output_padding", transposed ? r.ints("output_padding", dims) : Ints(dims, 0)},
                 {"groups", r.integer("groups")}});
}

std::optional<Node> norm(const Respelling& r) {
  if (r.schema.name == "layer_norm") {
    Node made = r.call("aten.native_layer_norm.default", {r.operand(0), r.operand(1), r.operand(2)},
                       {{"normalized_shape", r.attr("normalized_shape")}, {"eps", r.attr("eps")}});
    Shape kept = r.out().shape;
    const auto normalised = static_cast<int>(r.ints("normalized_shape", 1).size());
    for (int i = std::max(0, kept.rank() - normalised); i < kept.rank(); ++i) kept[i] = 1;
    r.result(made, r.out().dtype, kept);
    r.result(made, r.out().dtype, kept);
    return made;
  }
  if (r.schema.name == "group_norm") {
    const std::int64_t n = r.in(0).shape[0], c = r.in(0).shape[1], groups = r.integer("num_groups");
    if (n == 0 || c == 0) return std::nullopt;
    Node made = r.call(
        "aten.native_group_norm.default", {r.operand(0), r.operand(1), r.operand(2)},
        {{"N", n}, {"C", c}, {"HxW", r.in(0).shape.elements() / (n * c)}, {"group", groups}, {"eps", r.attr("eps")}});
    r.result(made, r.out().dtype, {n, groups});
    r.result(made, r.out().dtype, {n, groups});
    return made;
  }
  if (r.schema.name == "batch_norm" && r.given(3) && r.given(4)) {
    const bool* training = std::get_if<bool>(&r.attr("training"));
    if (training && *training) return std::nullopt;
    Node made = r.call("aten._native_batch_norm_legit_no_training.default",
                       {r.operand(0), r.operand(1), r.operand(2), r.operand(3), r.operand(4)},
                       {{"momentum", r.attr("momentum")}, {"eps", r.attr("eps")}});
    r.result(made, r.out().dtype, {0});
    r.result(made, r.out().dtype, {0});
    return made;
  }
  return std::nullopt;
}

std::optional<Node> pooling(const Respelling& r) {
  if (r.schema.name == "adaptive_avg_pool2d")
    return r.call("aten._adaptive_avg_pool2d.default", {r.operand(0)}, r.node.attrs);
  if (r.schema.name != "max_pool2d") return std::nullopt;
  Node made = r.call("aten.max_pool2d_with_indices.default", {r.operand(0)}, r.node.attrs);
  r.result(made, DType::i64, r.out().shape);
  return made;
}

std::optional<Node> softmax(const Respelling& r) {
  if ((r.schema.name != "softmax" && r.schema.name != "log_softmax") || r.out().dtype != r.in(0).dtype)
    return std::nullopt;
  return r.call("aten._" + r.schema.name + ".default", {r.operand(0)},
                {{"dim", r.attr("dim")}, {"half_to_float", false}});
}

std::optional<Node> product(const Respelling& r) {
  if (r.schema.name != "matmul") return std::nullopt;
  const int a = r.in(0).rank(), b = r.in(1).rank();
  if (a == 2 && b == 2) return r.call("aten.mm.default", r.node.inputs);
  if (a == 3 && b == 3 && r.in(0).shape[0] == r.in(1).shape[0]) return r.call("aten.bmm.default", r.node.inputs);
  return std::nullopt;
}

std::optional<Node> conversion(const Respelling& r) {
  if (r.schema.name == "to") return r.call("aten._to_copy.default", {r.operand(0)}, {{"dtype", r.out().dtype}});
  if (r.schema.name == "contiguous") return r.call("aten.clone.default", {r.operand(0)});
  return std::nullopt;
}

std::optional<Node> filled(const Respelling& r) {
  std::map<std::string, Attr> values{{"zeros_like", std::int64_t{0}},
                                     {"new_zeros", std::int64_t{0}},
                                     {"ones_like", std::int64_t{1}},
                                     {"new_ones", std::int64_t{1}},
                                     {"new_full", r.attr("fill_value")}};
  const auto found = values.find(r.schema.name);
  if (found == values.end()) return std::nullopt;
  return r.call("aten.full.default", {},
                {{"size", r.out().shape.dims()}, {"fill_value", found->second}, {"dtype", r.out().dtype}});
}

std::optional<Node> pieces(const Respelling& r) {
  const std::string& name = r.schema.name;
  if (name != "chunk" && name != "tensor_split" && r.schema.full_name() != "aten.split.sizes") return std::nullopt;
  const int rank = r.in(0).rank();
  const auto dim = static_cast<int>(r.integer("dim") < 0 ? r.integer("dim") + rank : r.integer("dim"));
  Ints sizes;
  for (ValueId v : r.node.outputs) {
    if (v == no_value || dim < 0 || dim >= r.graph[v].type.rank()) return std::nullopt;
    sizes.push_back(r.graph[v].type.shape[dim]);
  }
  return r.call("aten.split_with_sizes_copy.default", {r.operand(0)},
                {{"split_sizes", sizes}, {"dim", std::int64_t{dim}}});
}

// The TOSA operators that a node lowers to, and the one operand that they read; none where it does not lower, or they
// read several. (Which operand is read is not the position's to say: `copy` gives its second.)
struct Moved {
  std::vector<Node> nodes;
  std::size_t operand = 0;
};

std::optional<Moved> moved_operand(const Respelling& r) {
  Graph one;
  Node copy = r.node;
  std::vector<std::size_t> operands;
  for (std::size_t i = 0; i < copy.inputs.size(); ++i) {
    if (copy.inputs[i] == no_value) continue;
    one.inputs.push_back(copy.inputs[i] = one.add_value(fmt::format("in{}", i), r.in(i)));
    operands.push_back(i);
  }
  copy.outputs = {one.add_value("out", r.out())};
  one.outputs = copy.outputs;
  one.nodes = {copy};
  auto lowered = lower(one);
  if (!lowered.ok()) return std::nullopt;
  const std::vector<char> read = used_values(lowered->graph);
  std::optional<Moved> moved;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!read[lowered->graph.inputs[k]]) continue;
    if (moved) return std::nullopt;
    moved = Moved{lowered->graph.nodes, operands[k]};
  }
  return moved;
}

// What moves elements without looking at them is one of three kernels, whatever its name: the lowering tells which.
// Only reshapes: view_copy. One transpose: permute_copy. Repeats of dims of size 1: expand_copy.
std::optional<Node> movement(const Respelling& r) {
  if (r.node.outputs.size() != 1) return std::nullopt;
  const std::optional<Moved> moved = moved_operand(r);
  if (!moved || moved->nodes.empty()) return std::nullopt;
  const std::vector<Node>& nodes = moved->nodes;
  const TensorType& in = r.in(moved->operand);
  if (in.dtype != r.out().dtype) return std::nullopt;
  const ValueId operand = r.operand(moved->operand);
  const Ints size = r.out().shape.dims();
  auto only = [&](std::initializer_list<std::string_view> allowed) {
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](const Node& n) { return std::count(allowed.begin(), allowed.end(), n.op) > 0; });
  };
  if (only({"tosa.reshape", "tosa.identity"})) {
    if (in.shape.elements() != r.out().shape.elements()) return std::nullopt;
    return r.call("aten.view_copy.default", {operand}, {{"size", size}});
  }
  if (nodes.size() == 1 && nodes[0].op == "tosa.transpose")
    return r.call("aten.permute_copy.default", {operand}, {{"dims", nodes[0].attrs.get_or<Ints>("perms", {})}});
  if (!only({"tosa.reshape", "tosa.identity", "tosa.tile"}) || in.rank() > r.out().rank()) return std::nullopt;
  const int missing = r.out().rank() - in.rank();
  for (int d = 0; d < in.rank(); ++d)
    if (in.shape[d] != 1 && in.shape[d] != r.out().shape[d + missing]) return std::nullopt;
  return r.call("aten.expand_copy.default", {operand}, {{"size", size}});
}

// Second names, and calls that are another call with an argument more.
std::optional<Node> alias(const Respelling& r) {
  static const std::map<std::string_view, std::string_view> names{
      {"multiply", "mul"},        {"subtract", "sub"},      {"divide", "div"},
      {"__and__", "bitwise_and"}, {"__or__", "bitwise_or"}, {"__xor__", "bitwise_xor"},
      {"concat", "cat"},          {"concatenate", "cat"},   {"tile", "repeat"}};
  Node made = r.node;
  if (const auto other = names.find(r.schema.name); other != names.end()) {
    made.op = fmt::format("aten.{}.{}", other->second, r.schema.overload);
    if (r.schema.name == "tile") made.attrs = {{"repeats", r.attr("dims")}};
    return made;
  }
  const std::string name = r.schema.full_name();
  if (r.schema.name == "grid_sampler" && r.in(0).rank() == 4) {
    made.op = "aten.grid_sampler_2d.default";
    return made;
  }
  if (name == "aten.relu6.default")
    return r.call("aten.hardtanh.default", {r.operand(0)},
                  {{"min_val", std::int64_t{0}}, {"max_val", std::int64_t{6}}});
  if (name == "aten.max.other" || name == "aten.min.other")
    return r.call(name == "aten.max.other" ? "aten.maximum.default" : "aten.minimum.default", r.node.inputs);
  if (name == "aten.type_as.default")
    return r.call("aten._to_copy.default", {r.operand(0)}, {{"dtype", r.out().dtype}});
  if (name == "aten.pad.default" && r.attr("mode") == Attr(std::string("constant")))
    return r.call("aten.constant_pad_nd.default", {r.operand(0)},
                  {{"pad", r.attr("pad")}, {"value", r.has("value") ? r.attr("value") : Attr(std::int64_t{0})}});
  if (name == "aten.arange.start") {
    made.op = "aten.arange.start_step";
    made.attrs.set("step", std::int64_t{1});
    return made;
  }
  return std::nullopt;
}

}  // namespace

bool gives_number(const Node& node) {
  return (node.op == "aten.item.default" || node.op == "aten._local_scalar_dense.default") && node.inputs.size() == 1 &&
         node.inputs[0] != no_value && node.outputs.size() == 1 && node.outputs[0] != no_value;
}

Result<Node> core_form(Graph& graph, const Node& node) {
  if (gives_number(node)) return node;
  const FoundOp found = find_aten(node.op);
  const bool custom = node.attrs.find("argument_order") &&
                      (node.op.starts_with("aten.") ? executorch_call(node.op).has_value()
                                                    : kernels::out_variant_by_name(node.op).has_value());
  if (!found.op && !custom)
    return located(error("pack.unknown-operator",
                         fmt::format("{} stays outside the delegate, and no kernel is known for it", node.op))
                       .hint("save the program after ep = ep.run_decompositions(), or leave the call out"),
                   node.loc);
  if (node.outputs.empty() || node.outputs[0] == no_value)
    return located(error("pack.no-kernel", fmt::format("{} stays outside the delegate, but has no result", node.op)),
                   node.loc);
  if (!found.op) return node;
  const Respelling r{graph, node, *found.schema};
  std::size_t operand = 0;
  for (const SchemaArgument& a : found.schema->arguments) {  // a number in a tensor's place: no form looks for that
    if (a.is_tensor_list()) break;
    if (a.is_tensor() && !r.given(operand++) && !a.is_optional()) return node;
  }
  for (auto* form : {convolution, norm, pooling, softmax, product, conversion, filled, pieces, alias, movement})
    if (auto made = form(r)) return *std::move(made);
  return node;
}

}  // namespace tosaic::packing
