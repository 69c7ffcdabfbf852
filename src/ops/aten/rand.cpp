// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/op.h"

namespace tosaic {
namespace {
// What is drawn is nobody's to compare, and no target has a generator.
Vals lower(Builder& b, const Call& call) {
  Diagnostic why =
      error("aten.random", fmt::format("{} draws random numbers, which neither a delegate nor the CPU does",
                                       call.schema().full_name()))
          .hint("make them outside and pass them as an input, or keep fixed ones in a buffer");
  throw Refusal{located(std::move(why), b.loc())};
}
}  // namespace

AtenOp aten_rand() {
  return {
      .schemas =
          {"rand.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, "
           "Device? "
           "device=None, bool? pin_memory=None) -> Tensor",
           "randn.generator(SymInt[] size, *, Generator? generator, ScalarType? dtype=None, Layout? layout=None, "
           "Device? "
           "device=None, bool? pin_memory=None) -> Tensor",
           "rand(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
           "pin_memory=None) -> Tensor",
           "rand_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
           "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
           "randn(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
           "pin_memory=None) -> Tensor",
           "randn_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
           "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
           "randint(SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
           "bool? pin_memory=None) -> Tensor",
           "randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=4, Layout? layout=None, Device? "
           "device=None, bool? pin_memory=None) -> Tensor",
           "randint_like(Tensor self, SymInt high, *, ScalarType? dtype=None, Layout? layout=None, Device? "
           "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
           "randint_like.low_dtype(Tensor self, SymInt low, SymInt high, *, ScalarType? dtype=None, Layout? "
           "layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
           "randperm(SymInt n, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? "
           "pin_memory=None) -> Tensor",
           "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
           "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
           "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)",
           "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> "
           "Tensor",
           "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
           "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
           "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
           "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
           "uniform(Tensor self, float from=0., float to=1., *, Generator? generator=None) -> Tensor",
           "uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
           "exponential(Tensor self, float lambd=1., *, Generator? generator=None) -> Tensor",
           "exponential_(Tensor(a!) self, float lambd=1., *, Generator? generator=None) -> Tensor(a!)",
           "poisson(Tensor self, Generator? generator=None) -> Tensor"},
      .summary = "random numbers: refused",
      .rule = Rule::float_only,
      .lower = {lower},
      .domain = {"rand.generator: [2,3], generator=None # refused=aten.random: the values are drawn anew in each run",
                 "randn.generator: [2,3], generator=None # refused=aten.random: the values are drawn anew in each run",
                 "rand.default: [2,3] # refused=aten.random: the values are drawn anew in each run",
                 "rand_like.default: x(2,3) # refused=aten.random: the values are drawn anew in each run",
                 "randn.default: [2,3] # refused=aten.random: the values are drawn anew in each run",
                 "randn_like.default: x(2,3) # refused=aten.random: the values are drawn anew in each run",
                 "randint.default: 9, [4] # refused=aten.random: the values are drawn anew in each run",
                 "randint.low: 2, 9, [4] # refused=aten.random: the values are drawn anew in each run",
                 "randint_like.default: i(0,5,4), 9 # refused=aten.random: the values are drawn anew in each run",
                 "randint_like.low_dtype: i(0,5,4), 2, 9 # refused=aten.random: the values are drawn anew in each run",
                 "randperm.default: 5 # refused=aten.random: the values are drawn anew in each run",
                 "bernoulli.default: u(0,1,4) # refused=aten.random: the values are drawn anew in each run",
                 "bernoulli.p: x(4), 0.5 # refused=aten.random: the values are drawn anew in each run",
                 "multinomial.default: u(0,1,4), 2 # refused=aten.random: the values are drawn anew in each run",
                 "normal.Tensor_Tensor: x(4), u(1,2,4) # refused=aten.random: the values are drawn anew in each run",
                 "normal.Tensor_float: x(4) # refused=aten.random: the values are drawn anew in each run",
                 "normal.float_Tensor: 0.5, u(1,2,4) # refused=aten.random: the values are drawn anew in each run",
                 "uniform.default: x(4) # refused=aten.random: the values are drawn anew in each run",
                 "exponential.default: x(4) # refused=aten.random: the values are drawn anew in each run",
                 "poisson.default: u(1,2,4) # refused=aten.random: the values are drawn anew in each run"}};
}
}  // namespace tosaic
