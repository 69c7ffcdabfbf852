// SPDX-License-Identifier: Apache-2.0
// A quantised program held against its floats: what is compared, on which samples. pipeline.cpp takes the steps.
#pragma once
#include <variant>

#include "compare/compare.h"
#include "pipeline/context.h"
#include "quantise/float_program.h"
#include "tosaic/comparison.hpp"

namespace tosaic {

// One method, at one size? Error: compare.methods.
Status is_one_program(const ExportedProgram& program, const CompileOptions& options);
// Does it become integers, too? Errors: compare.floats, compare.methods.
Status comparable(const ExportedProgram& program, const CompileOptions& options);
// The calibration samples pass on, and stay here.
SamplesFor keeping(SamplesFor given, const std::shared_ptr<Samples>& kept);
// Error compare.sizes: the program's vary.
Result<Observed> at_numbers(std::variant<Graph, Observed> begun);
// Of a program as its samples left it. Errors: compare.already-quantised, compare.nothing-quantised.
Status has_floats(const Observed& seen);
// What the program is run with: what `shown` gives, else some of those that it was calibrated with. Errors:
// compare.no-samples, compare.not-a-number, those of `shown`.
enum class Taken : std::uint8_t { first, all_over };  // of a program with states always the first
Result<Samples> samples_to_compare(const Graph& floats, const SamplesFor& shown, const Samples& calibrated,
                                   std::size_t most = 8, Taken taken = Taken::first);
// A program that stays floats, some of them narrower than those that it is held against. Errors: compare.floats,
// compare.already-quantised, compare.quantised-weights.
Result<Comparison> compare_floats(Observed seen, const SamplesFor& given, const ShownSamples& shown, const Context& c);
// How a program that is lowered for the target is held against its floats.
CompareHow compare_how(const Split& split, const Context& c);
// The program as it is lowered for the target, run on the CPU.
Result<Comparison> compare_split(const FloatProgram& floats, const Split& split, const Samples& samples,
                                 const ShownSamples& shown, const Context& c);

}  // namespace tosaic
