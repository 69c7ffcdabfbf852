// SPDX-License-Identifier: Apache-2.0
#include "read/program_types.h"

#include <fmt/format.h>

#include "read/pt2_enums.h"
#include "read/read_error.h"
#include "read/stored_tensor.h"

namespace tosaic {
namespace {
constexpr std::int64_t no_bound = std::int64_t{1} << 48;
}

ProgramTypes::ProgramTypes(std::optional<Json> range_constraints) {
  if (!range_constraints) return;
  for (const auto& [symbol, range] : range_constraints->members()) {
    Bounds bounds;
    if (auto lowest = range.find("min_val")) bounds.lowest = lowest->integer();
    // Older writers spell "no bound" as a number near 2^63.
    if (auto highest = range.find("max_val"); highest && highest->integer() < no_bound)
      bounds.highest = highest->integer();
    if (bounds.lowest && bounds.highest && *bounds.lowest > *bounds.highest)
      fail("pt2.bad-shape", fmt::format("the range {} of {} is empty", to_string(bounds), symbol));
    symbols_.emplace(symbol, bounds);
  }
}

Bounds ProgramTypes::bounds_of(std::string_view symbol) const {
  auto found = symbols_.find(std::string(symbol));
  return found == symbols_.end() ? Bounds{} : found->second;
}

Dim ProgramTypes::size(const Json& sym_int) const {
  auto [tag, value] = sym_int.tagged();
  if (tag == "as_int") return value.integer();
  return read_symbolic(value.at("expr_str").text(), [&](std::string_view symbol) { return bounds_of(symbol); });
}

DType ProgramTypes::dtype(const Json& number, const std::string& what) {
  const Pt2DType found = pt2_dtype(number.integer());
  if (found.type) return *found.type;
  fail(error("pt2.unsupported-dtype",
             fmt::format("{} is of dtype {}, which tosaic cannot hold", what,
                         found.name.empty() ? fmt::format("number {}", number.integer()) : std::string(found.name)))
           .hint(found.name.starts_with("complex")
                     ? "inside a program tensors may be of complex64; what it takes, returns and keeps must be real: "
                       "torch.view_as_real(x) gives pairs, torch.view_as_complex takes them"
                     : "compute this part in another dtype, or leave it out of the exported program"));
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

bool ProgramTypes::is_complex(const Json& meta) { return meta.at("dtype").integer() == pt2_complex64; }

TensorType ProgramTypes::pairs_type(const Json& meta, const std::string& what) const {
  TensorType type = strided_type(DType::f32, meta, what);
  std::vector<Dim> dims = type.shape.dims();
  dims.emplace_back(2);
  return type.with(Shape(std::move(dims)));
}

TensorType ProgramTypes::tensor_type(const Json& meta, const std::string& what) const {
  return strided_type(dtype(meta.at("dtype"), what), meta, what);
}

TensorType ProgramTypes::strided_type(DType type, const Json& meta, const std::string& what) const {
  if (auto layout = meta.find("layout"); layout && layout->integer() != pt2_strided)
    fail(error("pt2.unsupported-layout",
               fmt::format("{} is {}, but only strided tensors are supported", what, pt2_layout(layout->integer())))
             .hint("convert it with .to_dense() before exporting"));
  std::vector<Dim> dims;
  for (const Json& item : meta.at("sizes").items()) dims.push_back(size(item));
  Shape shape(std::move(dims));
  std::vector<std::int64_t> largest;  // of a size without bound the size is checked where it is known
  for (const Dim& dim : shape.dims())
    largest.push_back(dim.is_number() ? dim.value() : dim.bounds().highest.value_or(1));
  check_sizes(largest, what);
  return {type, std::move(shape), std::nullopt};
}

}  // namespace tosaic
