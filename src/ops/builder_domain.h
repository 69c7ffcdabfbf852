// SPDX-License-Identifier: Apache-2.0
// Tables of functions that are not defined everywhere: acos, atanh, log, sqrt, powers. A code may stand a rounding
// error outside of the domain that its tensor's true values keep to.
#pragma once
#include <functional>
#include <vector>

namespace tosaic {

using RealFunction = std::function<std::vector<double>(const std::vector<double>&)>;

// y = f(x) at ascending x. Where f is undefined (NaN), y becomes what f is at the nearest end of its domain.
// `interpolated`: a table's knots, between which others lie on straight lines; the line that crosses an end of the
// domain goes through f's value there. A pole at one end of x has the sign that it has from within.
void close_domain(const RealFunction& f, const std::vector<double>& x, std::vector<double>& y, bool interpolated);

}  // namespace tosaic
