// SPDX-License-Identifier: Apache-2.0
// Bundled programs (.bpte): a .pte with cases to try it with, as ExecuTorch's developer tools write and run them.
//
//   for (const auto& done : *tosaic::check_cases(*tosaic::read_bundle(file, "model.bpte")))
//     if (!done.passed) std::puts(done.why.c_str());
#pragma once
#include <string>
#include <vector>

#include "tosaic/diagnostic.hpp"
#include "tosaic/result.hpp"
#include "tosaic/session.hpp"
#include "tosaic/tensor.hpp"

namespace tosaic {

struct BundledCase {
  std::string method = "forward";
  // In the order of the method's inputs and outputs; literals are numbers (integer, real or bool). No outputs: nothing
  // to compare with.
  std::vector<Output> inputs, outputs;
};
struct Bundle {
  Bytes program;  // a .pte
  std::vector<BundledCase> cases;
};

// By its first bytes: does it have the identifier of a bundled program?
TOSAIC_API bool is_bundle(const Bytes& file);
// Errors: bpte.version, bpte.corrupt.
TOSAIC_API Result<Bundle> read_bundle(const Bytes& file, const std::string& name = "program");
// Errors: bpte.dtype, bpte.value (None, a text or a list), bpte.size.
TOSAIC_API Result<Bytes> write_bundle(const Bundle& bundle);

// ExecuTorch's: a result passes where it lies within absolute + relative * |what is expected|. Integers and booleans
// have to be equal.
struct Tolerance {
  double relative = 1e-5, absolute = 1e-8;
};
struct CaseOutcome {
  std::string method;
  std::size_t number = 0;  // among those of the method
  bool passed = false;
  std::string why;  // "output 0: 3 of 10 elements differ, the most [2]: 1.5 for 1.25"; empty: it passed
};
// Each method is loaded once and runs its cases one after the other; `options` says how, but for the method. Errors:
// those of loading a program; what goes wrong in a case is its outcome.
TOSAIC_API Result<std::vector<CaseOutcome>> check_cases(const Bundle& bundle, const std::string& name = "program",
                                                        const SessionOptions& options = {}, Tolerance tolerance = {},
                                                        const Messages& messages = {});

}  // namespace tosaic
