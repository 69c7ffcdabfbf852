// SPDX-License-Identifier: Apache-2.0
#include "ops/rules/quantised_call.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "ir/marks.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {

bool is_real(const std::optional<Val>& operand) {
  return operand && is_float(operand->dtype()) && !operand->type().quantised();
}
bool is_quantised(const std::optional<Val>& operand) { return operand && operand->type().quantised(); }

Vals QuantisedCall::plain(const Attrs& attrs) { return lower_call(b, node.op, std::move(operands), attrs, declared); }

Vals QuantisedCall::as_declared(const Attrs& attrs) {
  Vals results = plain(attrs);
  for (std::size_t i = 0; i < results.size() && i < declared.size(); ++i)
    if (declared[i].quantised()) results[i] = b.rescale(results[i], declared[i].with(results[i].shape()));
  return results;
}

Node QuantisedCall::undeclared() const {
  Node call{node.op, {}, node.attrs, {}, node.loc, {}};
  for (const auto& v : operands) call.inputs.push_back(v ? v->id() : no_value);
  return call;
}

double QuantisedCall::largest_magnitude(Val constant) const {
  double largest = 0;
  for (std::int64_t i = 0; constant.is_constant() && i < constant.shape().elements(); ++i) {
    const double value = std::fabs(
        element_as_double(constant.dtype(), b.graph()[constant.id()].constant.data(), static_cast<std::size_t>(i)));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  if (const auto* at_any_size = find_mark(node, mark::largest))
    for (std::size_t i = 0; i < operands.size() && i < at_any_size->size(); ++i)
      if (operands[i] && operands[i]->id() == constant.id())
        largest = std::max(largest, std::min((*at_any_size)[i], outermost));
  return largest;
}

Val QuantisedCall::quantised_constant(Val x, DType dtype, double scale, std::int64_t zero, double step) const {
  if (!x.is_constant())
    b.refuse("quantise.float-operand", fmt::format("operand {} of {} is float among quantised ones ({})",
                                                   to_string(x.type()), node.op, found.rule->name));
  const auto range = range_of(dtype);
  const auto n = static_cast<std::size_t>(x.shape().elements());
  std::vector<std::int64_t> codes(n);
  for (std::size_t i = 0; i < n; ++i) {
    double real = element_as_double(x.dtype(), b.graph()[x.id()].constant.data(), i);
    double code = std::floor(std::nearbyint(real / scale / step) * step + 0.5) + static_cast<double>(zero);
    if (std::isnan(code)) code = static_cast<double>(zero);
    codes[i] = static_cast<std::int64_t>(
        std::clamp(code, static_cast<double>(range.lowest), static_cast<double>(range.highest)));
  }
  return b.constant({dtype, x.shape(), Scales{{scale}, {zero}}}, constant_bytes(dtype, codes));
}

Val QuantisedCall::with_type_of(Val x, const TensorType& to) const {
  return quantised_constant(x, to.dtype, to.scales->scale[0], to.scales->zero_point[0]);
}

}  // namespace tosaic
