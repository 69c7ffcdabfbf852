// SPDX-License-Identifier: Apache-2.0
#include "c_source/elements.h"

#include <algorithm>

#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/walk.h"

namespace tosaic::c_source {

std::string name_of_value(ValueId v) { return fmt::format("v{}", v); }

std::vector<std::int64_t> dense_strides(const Shape& shape) { return tosa::row_major(shape).strides; }

std::string index_sum(const std::vector<std::string>& index, const std::vector<std::int64_t>& strides,
                      std::int64_t offset) {
  std::string sum = offset ? fmt::format("{}", offset) : "";
  for (std::size_t d = 0; d < index.size() && d < strides.size(); ++d) {
    if (strides[d] == 0 || index[d] == "0") continue;
    if (!sum.empty()) sum += " + ";
    sum += strides[d] == 1 ? index[d] : fmt::format("{} * {}", index[d], strides[d]);
  }
  return sum.empty() ? "0" : sum;
}

plan::Fusing fusing(const Planning& planning) {
  return {.can = [&planning](std::uint32_t n) { return !planning.taken[n] && has_element(planning.view(n)); },
          .max_nodes = 40,
          .joins = true};
}

Elements::Elements(const Planning& planning, std::vector<std::uint32_t> nodes, ValueId known, std::string known_as)
    : planning_(planning),
      nodes_(std::move(nodes)),
      expression_(plan::expression_of(planning.graph, nodes_)),
      known_(known),
      known_as_(std::move(known_as)) {}

std::vector<ValueId> Elements::reads() const {
  std::vector<ValueId> values;
  const auto add = [&](ValueId v) {
    if (v != known_ && std::ranges::find(values, v) == values.end()) values.push_back(v);
  };
  for (const auto& input : expression_.inputs) add(input.value);
  for (std::uint32_t n : nodes_) std::ranges::for_each(lists_of(planning_.view(n)), add);
  return values;
}

void open_lanes(Writer& out, const std::string& name, std::int64_t size) {
  out.open("for (int32_t {0} = 0; {0} < {1}; {0} += TOSAIC_LANES)", name, size);
  out.line("const tosaic_some some = tosaic_lanes_some({}, {});", size, name);
}
std::string load_lanes(DType type, const std::string& tensor, const std::string& index) {
  return fmt::format("tosaic_lanes_load_{}({} + {}, some)", lanes_type(type), tensor, index);
}

bool Elements::has_lanes() const {
  if (expression_.shape.rank() == 0 || expression_.shape.sizes().back() < shortest_row) return false;
  for (const auto& input : expression_.inputs)
    if (lanes_type(planning_.type(input.value).dtype).empty() || input.strides.back() > 1) return false;
  return std::ranges::all_of(nodes_, [&](std::uint32_t n) { return c_source::has_lanes(planning_.view(n)); });
}

std::string Elements::load(const plan::Expression::Input& input, const std::vector<std::string>& index,
                           bool lanes) const {
  const std::string tensor = name_of_value(input.value), at = index_sum(index, input.strides, input.offset);
  if (lanes && input.strides.back() == 1) return load_lanes(planning_.type(input.value).dtype, tensor, at);
  const std::string one = fmt::format("{}[{}]", tensor, at);
  return lanes ? fmt::format("tosaic_lanes_all({})", one) : one;
}

std::string Elements::calls(Writer& out, const std::vector<std::string>& loads, const std::string& channel,
                            bool lanes) {
  std::vector<std::string> made;
  for (const auto& call : expression_.calls) {
    std::vector<std::string> operands;
    for (int i : call.operands)
      operands.push_back(i >= 0 ? loads[static_cast<std::size_t>(i)] : made[static_cast<std::size_t>(~i)]);
    const tosa::View view = planning_.view(call.node);
    made.push_back(fmt::format("e{}", made.size()));
    out.line("const {} {} = {};", lanes ? "tosaic_lanes" : c_type(view.out().dtype), made.back(),
             *element(view, operands, channel, lanes));
  }
  return made.back();
}

std::string Elements::print(Writer& out, const std::vector<std::string>& index, bool lanes) {
  std::vector<std::string> loads;
  for (const auto& input : expression_.inputs) {
    if (input.value == known_) {
      loads.push_back(known_as_);
      continue;
    }
    loads.push_back(fmt::format("x{}", loads.size()));
    out.line("const {} {} = {};", lanes ? "tosaic_lanes" : c_type(planning_.type(input.value).dtype), loads.back(),
             load(input, index, lanes));
  }
  return calls(out, loads, index.empty() ? "0" : index.back(), lanes);
}

namespace {

// Dims that all walks cross alike are one: fewer loops, longer inner ones.
struct Nest {
  std::vector<std::int64_t> sizes;
  std::vector<std::vector<std::int64_t>> strides;  // by walk, then by dim
};
Nest merged(const Shape& shape, const std::vector<std::vector<std::int64_t>>& walks, bool keep_last) {
  Nest nest;
  nest.strides.resize(walks.size());
  for (int d = 0; d < shape.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    const bool last = keep_last && d == shape.rank() - 1;
    if (shape.size(d) == 1 && !last) continue;
    bool joins = !nest.sizes.empty() && !last;
    for (std::size_t k = 0; k < walks.size() && joins; ++k)
      joins = nest.strides[k].back() == walks[k][at] * shape.size(d);
    if (!joins) nest.sizes.push_back(1);
    nest.sizes.back() *= shape.size(d);
    for (std::size_t k = 0; k < walks.size(); ++k)
      joins ? void(nest.strides[k].back() = walks[k][at]) : nest.strides[k].push_back(walks[k][at]);
  }
  return nest;
}

void print_store(Writer& out, DType type, const std::string& tensor, const std::string& index,
                 const std::string& element, bool lanes) {
  if (lanes)
    out.line("tosaic_lanes_store_{}({} + {}, {}, some);", lanes_type(type), tensor, index, element);
  else
    out.line("{}[{}] = {};", tensor, index, element);
}

}  // namespace

void Elements::print_loops(Writer& out) {
  std::vector<std::vector<std::int64_t>> walks;
  for (const auto& input : expression_.inputs) walks.push_back(input.strides);
  walks.push_back(dense_strides(expression_.shape));
  const bool by_channel = std::ranges::any_of(nodes_, [&](std::uint32_t n) {
    return planning_.node(n).op == tosa::op::rescale && planning_.view(n).flag("per_channel");
  });
  const Nest nest = merged(expression_.shape, walks, by_channel);
  for (std::size_t i = 0; i < expression_.inputs.size(); ++i) expression_.inputs[i].strides = nest.strides[i];
  expression_.shape = Shape(nest.sizes);
  const bool lanes = has_lanes();
  std::vector<std::string> index;
  for (std::size_t d = 0; d < nest.sizes.size(); ++d) {
    index.push_back(fmt::format("i{}", d));
    if (lanes && d == nest.sizes.size() - 1)
      open_lanes(out, index.back(), nest.sizes[d]);
    else
      out.loop(index.back(), nest.sizes[d]);
  }
  const std::string result = print(out, index, lanes);
  print_store(out, planning_.type(output()).dtype, name_of_value(output()), index_sum(index, nest.strides.back()),
              result, lanes);
  for (std::size_t d = 0; d < nest.sizes.size(); ++d) out.close();
}

bool take_elements(Planning& planning, std::uint32_t n) {
  if (!has_element(planning.view(n))) return false;
  Elements elements(planning, plan::elementwise_group(planning, fusing(planning), n));
  Writer out;
  elements.print_loops(out);
  planning.add({elements.nodes(), elements.reads(), {elements.output()}, out.take()});
  return true;
}

Epilogue epilogue_of(const Planning& planning, std::uint32_t n, const std::string& sum) {
  Epilogue found{{n}, std::nullopt, planning.node(n).outputs[0]};
  const Shape& shape = planning.type(found.output).shape;
  plan::longest_epilogue(planning, fusing(planning), found.output, [&](const std::vector<std::uint32_t>& nodes) {
    Elements elements(planning, nodes, found.output, sum);
    if (elements.shape().sizes() != shape.sizes()) return false;
    found.elements.emplace(std::move(elements));
    return true;
  });
  if (found.elements) {
    found.output = found.elements->output();
    found.nodes.insert(found.nodes.end(), found.elements->nodes().begin(), found.elements->nodes().end());
    std::ranges::sort(found.nodes);
  }
  return found;
}

bool has_lanes(const Planning& planning, const Epilogue& epilogue, std::uint32_t n) {
  const TensorType& made = planning.type(planning.node(n).outputs[0]);
  if (epilogue.elements && !epilogue.elements->has_lanes()) return false;
  return made.shape.rank() > 0 && made.shape.sizes().back() >= shortest_row && !lanes_type(made.dtype).empty() &&
         !lanes_type(planning.type(epilogue.output).dtype).empty();
}

void print_end(Writer& out, const Planning& planning, Epilogue& epilogue, const std::string& sum,
               const std::vector<std::string>& index, bool lanes) {
  const std::string result = epilogue.elements ? epilogue.elements->print(out, index, lanes) : sum;
  const TensorType& type = planning.type(epilogue.output);
  print_store(out, type.dtype, name_of_value(epilogue.output), index_sum(index, dense_strides(type.shape)), result,
              lanes);
}

Step step_of(std::vector<ValueId> reads, Epilogue& epilogue, std::string body) {
  if (epilogue.elements)
    for (ValueId v : epilogue.elements->reads())
      if (std::ranges::find(reads, v) == reads.end()) reads.push_back(v);
  return {epilogue.nodes, std::move(reads), {epilogue.output}, std::move(body)};
}

}  // namespace tosaic::c_source
