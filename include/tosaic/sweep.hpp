// SPDX-License-Identifier: Apache-2.0
// Which chip, which memory mode, which precision? A model compiled for many, and a table of what each costs and gives.
//
//   auto points = tosaic::sweep_points({.targets = {"ethos-u55", "ethos-u85-256"}});
//   auto rows = tosaic::sweep(*program, *points, data);
//   std::cout << tosaic::sweep_text("net.pt2", *rows);
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tosaic/compile.hpp"
#include "tosaic/evaluation.hpp"

namespace tosaic {

struct SweepQuestion {
  // Names, or what names begin with: "ethos-u55" is all of them. Empty: every Ethos-U, cortex-m55 and vulkan.
  std::vector<std::string> targets;
  // "int8", "int16x8", "int4" (weights), "float", "fp16" (Vulkan). Of each target those that it has. Empty: int8, and
  // int16x8 of targets of integers, float of others.
  std::vector<std::string> precisions;
  // Of Ethos-U: Vela's names, "own": the product's usual one, "all": those of Vela's own configuration. Empty: own.
  std::vector<std::string> memory_modes;
  Options options;  // of every compilation, as far as its target has them
};
struct SweepPoint {
  std::string target, precision, memory_mode;  // `memory_mode` is empty for the product's own
  Options options;
};
// Errors: target.unknown, sweep.precision, sweep.nothing.
TOSAIC_API Result<std::vector<SweepPoint>> sweep_points(const SweepQuestion& asked);

// In memory, since every point takes it anew.
struct SweepData {
  std::vector<std::vector<OwnedTensor>> calibration;  // empty: the example inputs stored in the program
  std::vector<LabelledSample> evaluation;             // empty: the first 8 of the calibration, without labels
};

// Of the program's (first) call: what a data set for it holds.
TOSAIC_API std::vector<TensorInfo> tensor_inputs(const Program& program);
// What the sources give. No calibration: the example inputs stored in the program. `limit`: samples of `evaluation` at
// most, 0: all. Errors: those of the sources.
TOSAIC_API Result<SweepData> sweep_data(const Program& program, const SampleSource& calibration,
                                        const LabelledData& evaluation = {}, std::size_t limit = 0);

struct SweepHow {
  int jobs = 0;  // points at once; 0: as many as there are cores
  std::function<void(std::size_t done, std::size_t total)> progress;
  std::function<bool()> cancelled;
};
// Runs the program in floats on every sample of `evaluation`, and keeps what it gives with the samples, up to half a
// gigabyte, so that no point has to run it. What fails is left to the points, whose problem it then is.
TOSAIC_API void run_floats(const Program& program, SweepData& data, const SweepHow& how = {});

// What became of one point. What is not known of a target has no value.
struct SweepRow {
  std::string target, precision, memory_mode;
  std::string problem;  // one line: why there is no program, or why it was not run; empty: all is well
  std::size_t nodes = 0, delegated = 0, delegates = 0;  // of the exported graph
  std::size_t macs_per_cycle = 0;                       // of an NPU: how large it is
  std::optional<double> cycles, inferences_per_second;  // Vela's estimate
  std::optional<double> sram_bytes, flash_bytes;        // Ethos-U: Vela's; Cortex-M: arena and states, weights
  std::size_t program_bytes = 0;
  std::optional<double> db;                      // of the worst output, against floats
  std::optional<double> right, right_in_floats;  // percent of the labels
  double seconds = 0;                            // that it took to compile and to run
  // On the Pareto front of the NPUs: no other row is as good in all of size, speed, SRAM and accuracy, and better in
  // one.
  bool best = false;
  bool compiled() const { return program_bytes > 0; }
};
// Compiled and run on this machine. Never fails: what goes wrong is the row's `problem`.
TOSAIC_API SweepRow measure_point(const Program& program, const SweepPoint& point, const SweepData& data,
                                  const std::function<bool()>& cancelled = {});
TOSAIC_API void mark_best(std::vector<SweepRow>& rows);

// All points, in their order, the best marked. Errors: run.cancelled.
TOSAIC_API Result<std::vector<SweepRow>> sweep(const Program& program, const std::vector<SweepPoint>& points,
                                               const SweepData& data, const SweepHow& how = {});

// A table for people, for other programs, for spreadsheets, and a page that sorts.
TOSAIC_API std::string sweep_text(const std::string& model, const std::vector<SweepRow>& rows);
TOSAIC_API std::string sweep_json(const std::string& model, const std::vector<SweepRow>& rows);
TOSAIC_API std::string sweep_csv(const std::vector<SweepRow>& rows);
TOSAIC_API std::string sweep_html(const std::string& model, const std::vector<SweepRow>& rows);
// Inferences per second at a clock of one's own, in Hz.
TOSAIC_API void set_clock(std::vector<SweepRow>& rows, double hertz);

}  // namespace tosaic
