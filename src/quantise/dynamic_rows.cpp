// SPDX-License-Identifier: Apache-2.0
#include "quantise/dynamic_rows.h"

#include <array>
#include <limits>
#include <string>

#include "ir/aten_operators.h"

namespace tosaic {

RowsWithScales quantise_dynamically(Composer& c, Val x, bool symmetric) {
  const std::vector<std::int64_t> row = row_block(x.type());
  const std::vector<Val> chosen = c.aten_all(torchao::op::choose_qparams_affine, {x},
                                             {{"mapping_type", std::string(symmetric ? "SYMMETRIC" : "ASYMMETRIC")},
                                              {"block_size", row},
                                              {"target_dtype", DType::i8},
                                              {"eps", static_cast<double>(std::numeric_limits<float>::epsilon())},
                                              {"scale_dtype", DType::f32},
                                              {"zero_point_dtype", DType::i8},
                                              {"keepdim", true}});
  std::optional<Val> zero;
  if (!symmetric) zero = chosen[1];
  const Val quantised =
      c.aten(torchao::op::quantize_affine, {x, chosen[0], zero}, {{"block_size", row}, {"output_dtype", DType::i8}});
  return {quantised, chosen[0], zero};
}

Val reals_of(Composer& c, ValueId quantised, ValueId scale, ValueId zero, const std::vector<std::int64_t>& block,
             DType dtype) {
  return c.aten(torchao::op::dequantize_affine, c.values(std::array{quantised, scale, zero}),
                {{"block_size", block}, {"input_dtype", DType::i8}, {"output_dtype", dtype}});
}

std::vector<std::int64_t> row_block(const TensorType& type) {
  std::vector<std::int64_t> row(static_cast<std::size_t>(type.rank()), 1);
  row.back() = type.shape.size(type.rank() - 1);
  return row;
}

}  // namespace tosaic
