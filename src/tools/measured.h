// SPDX-License-Identifier: Apache-2.0
// A float program that a command holds against its integers: what `compare` and `tune` take alike.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "base/system/output.h"
#include "tosaic/compile.hpp"

namespace tosaic::tools {

struct MeasuredProgram {
  std::string model, target = "tosa-int", calibrate, samples, evaluate;
};
void add_model_and_target(CLI::App& command, MeasuredProgram& to);
// `without`: what is taken where no samples to measure on are given.
void add_samples(CLI::App& command, MeasuredProgram& to, const std::string& does, const std::string& without);

// None of these files may be written. `options`: the command's.
void reads(Outputs& outputs, const MeasuredProgram& asked, const Options& options);

struct OpenedProgram {
  Program program;
  SampleSource calibration;  // empty: not given
  Evaluation shown;
};
// Errors: those of Program::open, Program::with_input_layout, read_samples and read_evaluation.
Result<OpenedProgram> open(const MeasuredProgram& asked, const Options& options, const Messages& messages);
// The error of a program that was opened so: about samples, it is about their file.
Diagnostic about_its_file(Diagnostic why, const MeasuredProgram& asked);

}  // namespace tosaic::tools
