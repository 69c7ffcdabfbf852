// SPDX-License-Identifier: Apache-2.0
#include "plan/quantised_operands.h"

#include "ir/tensor.h"
#include "plan/quantised_form.h"
#include "plan/views.h"

namespace tosaic::plan {
namespace {

class Finding {
 public:
  Finding(const Graph& graph, std::span<const std::int32_t> producer, const FixedValues& fixed)
      : graph_(graph), producer_(producer), fixed_(fixed) {}

  Result<std::optional<QuantisedOperands>> operands(ValueId weight, std::int64_t n, bool by_columns,
                                                    const std::function<bool(const QuantisedRows& rows)>& takes) const {
    const std::optional<QuantisedOperands> none;
    QuantisedOperands made;
    QuantisedRows& rows = made.rows;
    rows.n = n;
    rows.k = rows.group = graph_[weight].type.shape.elements() / n;
    rows.by_columns = by_columns;
    const ValueId root = skip_views(graph_, producer_, weight);
    const Node* product = maker(graph_, producer_, root);
    std::optional<QuantisedForm> form;
    if (product && product->op == tosa::op::mul && !by_columns) {
      form = find_quantised_form(graph_, *product, rows.k);
      if (!form) return none;
      rows.group = form->group;
    }
    if (rows.n * rows.k == 0) return none;
    TOSAIC_TRY(auto values, values_of(form ? form->quantised : root));
    if (!values) return none;
    rows.values = *std::move(values);
    if (!takes(rows)) return none;
    made.of_scales = {graph_[weight].type.dtype, Shape{rows.n, rows.groups()}, {}};
    TOSAIC_TRY(made.scales, scales_of(form, made.of_scales));
    if (made.scales.null()) return none;
    return std::optional(std::move(made));
  }

 private:
  // Bytes of the file, or what turns out to be whole numbers.
  Result<std::optional<QuantisedConstant>> values_of(ValueId values) const {
    if (auto constant = quantised_constant(graph_, producer_, values)) return constant;
    TOSAIC_TRY(const Bytes floats, fixed_.content(skip_views(graph_, producer_, values)));
    if (floats.null() || graph_[values].type.dtype != DType::f32) return std::optional<QuantisedConstant>();
    Bytes bytes = as_bytes(floats.as<float>());
    return bytes.null() ? std::optional<QuantisedConstant>() : QuantisedConstant{std::move(bytes)};
  }

  // One for each group. Those of a file that has them so stay where they are.
  Result<Bytes> scales_of(const std::optional<QuantisedForm>& form, const TensorType& wanted) const {
    const auto count = static_cast<std::size_t>(wanted.shape.elements());
    if (!form) return constant_bytes(wanted.dtype, std::vector<double>(count, 1.0));
    TOSAIC_TRY(Bytes given, fixed_.content(form->scales));
    if (given.null() || (form->times == 1 && given.size() == wanted.storage_bytes())) return given;
    if (wanted.dtype != DType::f32) given = converted({graph_[form->scales].type, given.data()}, DType::f32);
    std::vector<float> each(count);
    form->read_scales(given.as<float>(), 0, each);
    return converted({wanted.with(DType::f32), each.data()}, wanted.dtype);
  }

  const Graph& graph_;
  const std::span<const std::int32_t> producer_;
  const FixedValues& fixed_;
};

}  // namespace

Result<std::optional<QuantisedOperands>> quantised_operands(
    const Graph& graph, std::span<const std::int32_t> producer, const FixedValues& fixed, ValueId weight,
    std::int64_t n, bool by_columns, const std::function<bool(const QuantisedRows& rows)>& takes) {
  return Finding(graph, producer, fixed).operands(weight, n, by_columns, takes);
}

}  // namespace tosaic::plan
