// SPDX-License-Identifier: Apache-2.0
// Operator: which operator a node calls. A handle that is compared by pointer; its name is for people and files.
//
//   if (node.op == tosa::op::conv2d) ...          // generated names: a typo does not compile
//   node.op.overload_of(aten::op::sum)            // sum.default, sum.dim_IntList, ...
//   Operator("aten.relu.default")                 // readers and parsers: any name
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tosaic {

// "aten.add.Tensor" is "add" of "aten", in its overload "Tensor"; "tosa.conv2d" has no overload.
struct OperatorName {
  std::string_view text, space, base, overload;
};

class Operator {
 public:
  constexpr Operator() = default;  // of a node that has been taken out
  constexpr explicit Operator(const OperatorName& known) : name_(&known) {}
  // Any name is an operator, whether tosaic knows it or not; those that it does not know live as long as the process.
  explicit Operator(std::string_view name);

  constexpr std::string_view name() const { return name_->text; }
  std::string text() const { return std::string(name()); }
  constexpr std::string_view space() const { return name_->space; }        // "aten"; "" where the name has no dot
  constexpr std::string_view base() const { return name_->base; }          // "add"
  constexpr std::string_view overload() const { return name_->overload; }  // "Tensor", "default"; "" where it has none
  constexpr bool none() const { return name().empty(); }

  // Of the same namespace; of the same operator, whichever overload.
  constexpr bool same_space(Operator other) const { return space() == other.space(); }
  constexpr bool overload_of(Operator other) const { return same_space(other) && base() == other.base(); }
  constexpr bool is_tosa() const { return space() == "tosa"; }
  constexpr bool is_aten() const { return space() == "aten"; }
  constexpr bool is_control_flow() const { return space() == "higher_order"; }
  // Between floats and quantized values, as PyTorch's exported programs say it.
  constexpr bool is_conversion() const { return space() == "quantized_decomposed"; }

  constexpr bool operator==(const Operator&) const = default;
  const void* id() const { return name_; }

 private:
  static constexpr OperatorName nothing{};
  const OperatorName* name_ = &nothing;
};

// Those that have a constant (generated, from the files of src/ops and program_operators.txt).
std::span<const OperatorName* const> known_operators();

}  // namespace tosaic

// The constant `identifier` and what it points to.
#define TOSAIC_OPERATOR(identifier, text, space, base, overload)                           \
  inline constexpr ::tosaic::OperatorName identifier##_named{text, space, base, overload}; \
  inline constexpr ::tosaic::Operator identifier{identifier##_named};

template <>
struct std::hash<tosaic::Operator> {
  std::size_t operator()(tosaic::Operator op) const noexcept { return std::hash<const void*>()(op.id()); }
};

template <>
struct fmt::formatter<tosaic::Operator> : fmt::formatter<std::string_view> {
  template <class FormatContext>
  auto format(tosaic::Operator op, FormatContext& context) const {
    return fmt::formatter<std::string_view>::format(op.name(), context);
  }
};
