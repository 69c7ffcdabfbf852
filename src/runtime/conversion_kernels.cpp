// SPDX-License-Identifier: Apache-2.0
// Each computes what the operator's lowering does (ops/torchao/), step by step, so that the bytes are the host's.
#include "runtime/conversion_kernels.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstring>

namespace tosaic::runtime {
namespace {

// The arguments behind the tensor: scale, zero point, least and most value, dtype.
struct Quantisation {
  float scale = 1;
  std::int64_t zero = 0, least = 0, most = 0;
};

class QuantiseKernel : public Kernel {
 public:
  QuantiseKernel(std::int32_t from, std::int32_t to, double scale, const Quantisation& quantisation)
      : from_(from), to_(to), quantisation_(quantisation) {
    quantisation_.scale = static_cast<float>(1 / scale);
  }
  Status run(Cells& cells) override {
    const TensorCell &from = cells[at(from_)].tensor, &to = cells[at(to_)].tensor;
    const auto* x = static_cast<const float*>(from.data);
    const auto count = static_cast<std::size_t>(from.type.shape.elements());
    const auto least = static_cast<float>(quantisation_.least - quantisation_.zero),
               most = static_cast<float>(quantisation_.most - quantisation_.zero);
    for (std::size_t i = 0; i < count; ++i) {
      const float scaled = x[i] * quantisation_.scale;
      const float rounded = std::isnan(scaled) ? 0 : std::nearbyint(std::clamp(scaled, least, most));
      store_integer(to.type.dtype, to.data, i, static_cast<std::int64_t>(rounded) + quantisation_.zero);
    }
    return {};
  }
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<QuantiseKernel>(*this));
  }

 private:
  std::int32_t from_, to_;
  Quantisation quantisation_;
};

class DequantiseKernel : public Kernel {
 public:
  DequantiseKernel(std::int32_t from, std::int32_t to, double scale, const Quantisation& quantisation)
      : from_(from), to_(to), quantisation_(quantisation) {
    quantisation_.scale = static_cast<float>(scale);
  }
  Status run(Cells& cells) override {
    const TensorCell &from = cells[at(from_)].tensor, &to = cells[at(to_)].tensor;
    auto* x = static_cast<float*>(to.data);
    const auto count = static_cast<std::size_t>(from.type.shape.elements());
    const auto zero = static_cast<float>(quantisation_.zero);
    for (std::size_t i = 0; i < count; ++i) {
      const auto quantised = static_cast<float>(element_as_integer(from.type.dtype, from.data, i));
      x[i] = (quantised - zero) * quantisation_.scale;
    }
    return {};
  }
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<DequantiseKernel>(*this));
  }

 private:
  std::int32_t from_, to_;
  Quantisation quantisation_;
};

Result<std::unique_ptr<Kernel>> make(const KernelContext& context, const pte::KernelCall& call, const Cells& cells) {
  const std::string name = name_of(context.plan.operators[at(call.op)]);
  const bool quantises = name == "quantized_decomposed::quantize_per_tensor.out";
  if (!quantises && name != "quantized_decomposed::dequantize_per_tensor.out")
    return error("kernel.unknown", fmt::format("{} is not a kernel that a firmware has", name))
        .hint("delegate all operators: `tosaic explain` says why one is not");
  const auto wrong = [&] {
    return error("kernel.arguments", fmt::format("{} is called with arguments that a firmware does not take", name));
  };
  if (call.args.size() < 7) return wrong();
  for (const std::int32_t i : {call.args.front(), call.args.back()})
    if (i < 0 || !cells[at(i)].is_tensor) return wrong();
  const std::int32_t from = call.args.front(), to = call.args.back();
  const TensorCell &x = cells[at(from)].tensor, &y = cells[at(to)].tensor;
  const auto* scale = std::get_if<double>(&cells[at(call.args[1])].value);
  const auto number = [&](std::size_t k) { return std::get_if<std::int64_t>(&cells[at(call.args[k])].value); };
  if (!scale || !number(2) || !number(3) || !number(4) || y.constant || x.type.shape != y.type.shape ||
      x.dim_order != y.dim_order)
    return wrong();
  const Quantisation quantisation{1, *number(2), *number(3), *number(4)};
  const DType real = quantises ? x.type.dtype : y.type.dtype, integer = quantises ? y.type.dtype : x.type.dtype;
  if (real != DType::f32 || !is_integer(integer)) return wrong();
  if (quantises) return std::unique_ptr<Kernel>(std::make_unique<QuantiseKernel>(from, to, *scale, quantisation));
  return std::unique_ptr<Kernel>(std::make_unique<DequantiseKernel>(from, to, *scale, quantisation));
}

}  // namespace

KernelFactory conversion_kernels() {
  KernelFactory factory;
  factory.make = make;
  return factory;
}

}  // namespace tosaic::runtime
