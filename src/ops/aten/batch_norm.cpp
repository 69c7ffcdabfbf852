// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/batch_norm.h"
#include "ir/aten_operators.h"
#include "ops/core_form.h"
#include "ops/op.h"

namespace tosaic {
namespace {
bool flag_or(const Call& call, std::string_view name, bool otherwise) {
  return call.schema().argument(name) ? call.flag(name) : otherwise;
}
// A running statistic after one batch more.
Val moved(Val running, Val seen, double momentum) {
  return calls::add(calls::mul(running, 1.0 - momentum), calls::mul(calls::view(seen, running.shape()), momentum));
}

// The inference forms give only the first result: the saved statistics that follow it are empty tensors.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("input");
  const auto& name = call.schema().name;
  const bool training = flag_or(call, "training", name == "_batch_norm_with_update");
  auto weight = call.optional_tensor("weight"), bias = call.optional_tensor("bias");
  std::optional<Val> mean, variance;
  if (call.schema().argument("running_mean")) {
    mean = call.optional_tensor("running_mean");
    variance = call.optional_tensor("running_var");
  }
  if (!training && mean && variance) return batch_normalised(x, weight, bias, *mean, *variance, call.number("eps"));
  const bool functional = name == "_native_batch_norm_legit_functional";  // gives the new statistics, writes nothing
  if ((mean || variance) && !functional)
    b.refuse("aten.batch_norm.training",
             name +
                 " in training mode updates its running statistics: export the model after eval(); where that is "
                 "meant, save exported.run_decompositions({})");
  if (x.rank() < 2) b.refuse("aten.batch_norm.shape", "an input of shape " + to_string(x.shape()) + " has no channels");
  std::vector<int> axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  Normalised n = normalised(x, axes, call.number("eps"));
  Val y = affine(n.y, weight, bias, channel_shape(x));
  if (call.schema().returns.size() == 1) return y;
  Vals results{y, calls::view(n.mean, {x.dim(1)}), calls::view(n.rstd, {x.dim(1)})};
  if (functional) {
    const double count = static_cast<double>(elements_along(x, axes)), momentum = call.number("momentum");
    results.push_back(moved(call.tensor("running_mean"), n.mean, momentum));
    results.push_back(moved(call.tensor("running_var"), calls::mul(n.variance, count / (count - 1)), momentum));
  }
  return results;
}

std::optional<Node> core(const CoreCall& call) {
  if (call.schema.name != "batch_norm" || !call.given(3) || !call.given(4)) return std::nullopt;
  const bool* training = std::get_if<bool>(&call.attr("training"));
  if (training && *training) return std::nullopt;
  Node made = call.call(aten::op::_native_batch_norm_legit_no_training,
                        {call.operand(0), call.operand(1), call.operand(2), call.operand(3), call.operand(4)},
                        {{"momentum", call.attr("momentum")}, {"eps", call.attr("eps")}});
  call.add_result(made, call.out().dtype, {0});
  call.add_result(made, call.out().dtype, {0});
  return made;
}
}  // namespace

AtenOp aten_batch_norm() {
  return {
      .schemas = {"batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                  "running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
                  "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
                  "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
                  "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, "
                  "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
                  "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                  "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
                  "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
                  "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
                  "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
                  "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, "
                  "Tensor, Tensor running_mean_out, Tensor running_var_out)",
                  "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                  "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)"},
      .summary = "normalises each channel with given statistics, then a weight and a bias",
      .rule = Rule::inside,
      .lower = {lower},
      .domain = {"x(2,3,4,4), x(3), x(3), x(3), u(0.5,2,3), False, 0.1, 1e-5, True",
                 "x(2,3,4), None, None, x(3), u(0.5,2,3), False, 0.1, 1e-3, True",
                 "x(4,3), x(3), None, x(3), u(0.5,2,3), False, 0.1, 1e-5, True",
                 "x(2,3,4), x(3), x(3), None, None, True, 0.1, 1e-5, True",
                 "_native_batch_norm_legit_no_training.default: x(2,3,4,4), const(x(3)), const(x(3)), const(x(3)), "
                 "const(u(0.5,2,3)), 0.1, 1e-5 # results=1: the saved statistics are empty in inference",
                 "_native_batch_norm_legit.no_stats: x(2,3,4), x(3), x(3), True, 0.1, 1e-5",
                 "native_batch_norm.default: x(2,3,4), x(3), x(3), x(3), u(0.5,2,3), False, 0.1, 1e-5 # results=1: "
                 "the saved statistics are empty in inference",
                 "_native_batch_norm_legit.default: x(2,3,4), x(3), x(3), x(3), u(0.5,2,3), False, 0.1, 1e-5 # "
                 "results=1: the saved statistics are empty in inference",
                 "_native_batch_norm_legit_functional.default: x(2,3,4), x(3), x(3), x(3), u(0.5,2,3), True, 0.1, 1e-5",
                 "_batch_norm_no_update.default: x(2,3,4), x(3), x(3), x(3), u(0.5,2,3), 0.1, 1e-5 # results=1: "
                 "the saved statistics are empty in inference"},
      .core = core};
}
}  // namespace tosaic
