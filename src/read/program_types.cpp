// SPDX-License-Identifier: Apache-2.0
#include "read/program_types.h"

#include <fmt/format.h>
#include <algorithm>

#include "read/pt2_numbers.h"
#include "read/read_error.h"
#include "read/stored_tensor.h"

namespace tosaic {
namespace {
constexpr std::int64_t no_bound = std::int64_t{1} << 48;
}

ProgramTypes::ProgramTypes(std::optional<Json> range_constraints, const Sink& sink) : sink_(sink) {
  if (!range_constraints) return;
  for (const auto& [symbol, range] : range_constraints->members()) {
    Bounds bounds;
    if (auto lowest = range.find("min_val")) bounds.lowest = lowest->integer();
    // Older writers spell "no bound" as a number near 2^63.
    if (auto highest = range.find("max_val"); highest && highest->integer() < no_bound)
      bounds.highest = highest->integer();
    symbols_.emplace(symbol, bounds);
  }
}

Bounds ProgramTypes::bounds_of(std::string_view symbol) const {
  auto found = symbols_.find(std::string(symbol));
  return found == symbols_.end() ? Bounds{} : found->second;
}

DType ProgramTypes::dtype(const Json& number, const std::string& what) {
  const Pt2DType found = pt2_dtype(number.integer());
  if (found.type) return *found.type;
  fail(error("pt2.unsupported-dtype",
             fmt::format("{} is of dtype {}, which tosaic cannot hold", what,
                         found.name.empty() ? fmt::format("number {}", number.integer()) : std::string(found.name)))
           .hint("compute this part in another dtype, or leave it out of the exported program"));
}

std::int64_t ProgramTypes::plain_integer(const Json& sym_int, const std::string& what) {
  auto [tag, value] = sym_int.tagged();
  if (tag != "as_int") fail("pt2.bad-shape", fmt::format("{} is stored data, but its size is symbolic", what));
  return value.integer();
}

std::vector<std::int64_t> ProgramTypes::plain_integers(const Json& list, const std::string& what) {
  std::vector<std::int64_t> numbers;
  for (const Json& item : list.items()) numbers.push_back(plain_integer(item, what));
  return numbers;
}

TensorType ProgramTypes::tensor_type(const Json& meta, const std::string& what) {
  const DType type = dtype(meta.at("dtype"), what);
  if (auto layout = meta.find("layout"); layout && layout->integer() != pt2_strided)
    fail(error("pt2.unsupported-layout",
               fmt::format("{} is {}, but only strided tensors are supported", what, pt2_layout(layout->integer())))
             .hint("convert it with .to_dense() before exporting"));
  std::vector<std::int64_t> dims;
  std::vector<std::pair<int, SymbolicDim>> symbolic;
  for (const Json& size : meta.at("sizes").items()) {
    auto [tag, value] = size.tagged();
    if (tag == "as_int") {
      dims.push_back(value.integer());
      continue;
    }
    std::string unbounded;
    const SymbolicExpression e = read_symbolic(value.at("expr_str").text(), [&](std::string_view symbol) {
      const Bounds bounds = bounds_of(symbol);
      if (!bounds.highest) unbounded = symbol;
      return bounds;
    });
    std::optional<std::int64_t> hint;
    if (auto h = value.find("hint")) hint = h->tagged().second.integer();
    SymbolicDim dim{e.text, std::max<std::int64_t>(e.bounds.lowest.value_or(0), 0), 0};
    // Without an upper bound, the size that the program was exported with stands in for it.
    dim.highest = std::max(e.bounds.highest.value_or(hint.value_or(dim.lowest)), dim.lowest);
    if (!e.bounds.highest && warned_.insert(unbounded.empty() ? e.text : unbounded).second)
      sink_(warning("pt2.unbounded-size",
                    fmt::format("size {} of {} has no upper bound; {} is taken", e.text, what, dim.highest))
                .hint("give one when exporting: dynamic_shapes={..: torch.export.Dim(name, max=N)}"));
    if (dim.lowest == dim.highest && e.bounds.highest) {
      dims.push_back(dim.lowest);
      continue;
    }
    symbolic.emplace_back(static_cast<int>(dims.size()), std::move(dim));
    dims.push_back(symbolic.back().second.highest);
  }
  check_sizes(dims, what);
  TensorType result{type, Shape(std::move(dims)), std::nullopt};
  for (auto& [index, dim] : symbolic) result.shape.set_symbol(index, std::move(dim));
  return result;
}

}  // namespace tosaic
