// SPDX-License-Identifier: Apache-2.0
// A printed graph is a list of steps, each a C function: rows look at the graph and take one node, or several that are
// computed together. Private to src/c_source.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "c_source/print.h"
#include "ops/definitions/tosa_op.h"
#include "plan/memory.h"
#include "plan/uses.h"

namespace tosaic::c_source {

struct Step {
  std::vector<std::uint32_t> nodes;  // ascending; it runs where its last node stands
  std::vector<ValueId> reads, writes;
  std::string body;                 // reads v12, writes v13: pointers to the elements of values 12 and 13
  std::uint64_t scratch_bytes = 0;  // of memory for its own use: `scratch` in its body
  bool call = true;                 // false: nothing to do, the output lies where the input lies
};

// The graph being printed, and what is already decided.
struct Planning : plan::Uses {
  std::string name;  // of the function
  Kernels kernels = Kernels::tosaic;
  std::vector<bool> taken;
  std::vector<Step> steps;
  std::vector<plan::Alias> aliases;
  std::vector<std::pair<TensorType, Bytes>> made_constants;  // values behind those of the graph
  std::vector<Printed> bodies;                               // of control flow
  std::uint64_t loop_bytes = 0;                              // of what a turn of a loop makes, in addition to the arena

  Planning(const Graph& g, std::string of, Kernels calls)
      : Uses(g), name(std::move(of)), kernels(calls), taken(g.nodes.size(), false) {}
  tosa::View view(std::uint32_t n) const { return {graph, node(n)}; }
  void add(Step step);  // reads that it names twice are one
  // The number in a constant of one element (a zero point, a shift).
  std::int64_t scalar(ValueId v) const;
  // A constant that a step reads, made of others.
  ValueId add_constant(TensorType of, Bytes data);
  bool is_made(ValueId v) const { return v >= graph.values.size(); }
  const std::pair<TensorType, Bytes>& made(ValueId v) const { return made_constants[v - graph.values.size()]; }
  const TensorType& operand_type(ValueId v) const { return is_made(v) ? made(v).first : type(v); }
};

// "v12": a value in the body of a step.
std::string name_of_value(ValueId v);

// Makes a step of an untaken node, and of others with it, or leaves it to later rows.
using Take = bool (*)(Planning&, std::uint32_t node);
std::span<const Take> rows();

bool take_view(Planning& planning, std::uint32_t n);
bool take_scaled_product(Planning& planning, std::uint32_t n);  // convolutions and products in a kernel
bool take_product(Planning& planning, std::uint32_t n);         // any others
bool take_pool(Planning& planning, std::uint32_t n);
bool take_reduction(Planning& planning, std::uint32_t n);
bool take_movement(Planning& planning, std::uint32_t n);
bool take_indexed(Planning& planning, std::uint32_t n);  // GATHER, SCATTER, ARGMAX
bool take_resize(Planning& planning, std::uint32_t n);
bool take_fourier(Planning& planning, std::uint32_t n);
bool take_control_flow(Planning& planning, std::uint32_t n);
bool take_call(Planning& planning, std::uint32_t n);  // tosa.custom of domain "tosaic": a function of that name
bool take_elements(Planning& planning, std::uint32_t n);

}  // namespace tosaic::c_source
