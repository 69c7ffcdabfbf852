// SPDX-License-Identifier: Apache-2.0
#include "api/session_tensors.h"

namespace tosaic {

Result<std::vector<Tensor>> results_of(Session& session, const std::vector<Tensor>& inputs) {
  std::vector<InputTensor> lent;
  for (const Tensor& x : inputs) lent.push_back({x.data.data(), x.type.dtype, x.type.shape.sizes()});
  TOSAIC_TRY(const std::vector<Output> outputs, session.run(lent));
  std::vector<Tensor> results;
  for (const Output& y : outputs)
    if (y.tensor) results.push_back({{y.tensor->dtype, Shape(y.tensor->sizes), {}}, y.tensor->data});
  return results;
}

}  // namespace tosaic
