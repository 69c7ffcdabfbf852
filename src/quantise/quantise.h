// SPDX-License-Identifier: Apache-2.0
// Stage 3, quantise: ATen -> ATen with scales on types. Post-training: the float program runs on sample inputs,
// its tensors are observed, and each gets the integers that its operator's Rule asks for. Programs that PT2E
// quantised already carry their scales and only pass through `insert_boundaries`.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/rewrite_trace.h"
#include "ir/tensor.h"
#include "ops/definitions/tosa_op.h"
#include "quantise/observe.h"
#include "quantise/overrides.h"

namespace tosaic {

enum class Scheme : std::uint8_t { int8, int16x8 };        // dtype of activations
enum class Observer : std::uint8_t { histogram, minmax };  // histogram: the range with the least squared error

// Of weights: to the nearest quantised value, or with the least error on the samples (quantise/least_squares.h).
// by_width: least squares for weights of four bits, where they gain most.
enum class Rounding : std::uint8_t { by_width, nearest, least_squares };

struct NormRounds;  // how norms were written anew (calibration.h)

struct QuantiseOptions {
  Scheme scheme = Scheme::int8;
  Observer observer = Observer::histogram;
  bool per_channel = true;      // weights: one scale per output channel
  bool bias_correction = true;  // biases take back what rounded weights add to the mean (quantise/bias_correction.h)
  // Channels are moved to the middle of their range, and small ones made larger, where the layers that read them can
  // take that back (quantise/channel_offsets.h, quantise/equalisation.h).
  bool equalisation = true;
  std::function<bool(const Value& parameter)> may_equalise;  // those that it may change; empty: any
  Rounding rounding = Rounding::by_width;                    // of weights
  // Among methods of a program, or among its sizes: what samples of one of them say does not change the weights.
  bool shares_weights = false;
  bool four_bits =
      false;  // the model's own weights in quantised values from -7 to 7; else, and what composites bring, in 8
  bool sixteen_bits = false;  // weights next to activations of 16 bits (quantise/weights_in_two.cpp)
  bool widen_steep = true;    // operands of functions that 8 bits do not resolve (quantise/steep_functions.h)
  bool wide_inside = true;    // inner tensors of composites (softmax, layer norm) in int16
  bool float_outputs = true;  // what only leaves the program may leave it as floats, computed outside the delegate
  bool scalars_stay = false;  // what is computed from scalars alone (a loop's counters, tolerances) stays float
  PlanRequest request;        // what the user decides
  std::vector<ExportedNode> exported;    // the nodes that its overrides name
  std::optional<tosa::Spec> spec;        // each decision is tried on it; none: they are not tried
  std::map<std::string, Shape> varying;  // of a program that is one at all of its sizes: its tensors, by their names
  std::shared_ptr<const NormRounds> norms_as = {};  // as at all of its sizes; null: as the samples of this one say
  Rewrites rewrite = {};                            // how its rewrites are applied
  int threads = 0;
  std::function<void(std::size_t done, std::size_t total)> progress;  // samples calibrated
  std::function<bool()> cancelled;                                    // asked before each sample: compile.cancelled
};

// Each sample holds one tensor per graph input. Errors: calibrate.no-samples, calibrate.sample-type.
Result<Graph> quantise(Graph graph, const std::vector<std::vector<Tensor>>& samples, const QuantiseOptions& options,
                       const Sink& sink);

// The same in two steps: between them, methods of one program bring the ranges of their states together.
// What states hold, by their names.
using StateContents = std::map<std::string, Tensor>;
class Calibration {
 public:
  struct Impl;
  explicit Calibration(std::unique_ptr<Impl> impl);
  Calibration(Calibration&&) noexcept;
  Calibration& operator=(Calibration&&) noexcept;
  ~Calibration();
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};
// States begin with what `contents` has of their name and type, else with their first content; what the last sample
// leaves is put there.
Result<Calibration> calibrate(Graph graph, const std::vector<std::vector<Tensor>>& samples,
                              const QuantiseOptions& options, const Sink& sink, StateContents& contents);
// A state that several of them keep has one range in all: what any of them saw of it.
void share_state_ranges(std::span<Calibration* const> methods);
// One program, calibrated at each of the sizes that its samples have, may have norms that were written anew for rows as
// large as those of one size. Then this is how to write them for the rows of all sizes, to calibrate once more; null:
// there are none.
std::shared_ptr<const NormRounds> norms_of_all_sizes(std::span<Calibration* const> at_sizes);
// A tensor has one range at all of the sizes. Error calibrate.sizes: at one of them it is another program.
Status share_ranges(std::span<Calibration* const> at_sizes);
// The program (as `calibrate` takes it) at sizes that no sample has, with the plan and the ranges of one that was
// calibrated. The same error.
Result<Calibration> calibrated_at(Calibration& other, Graph graph, const QuantiseOptions& options, const Sink& sink);
Result<Graph> quantised(Calibration calibration);

// Has v's dim this size at all of the program's sizes? What is not known by name may vary.
bool size_stays(const QuantiseOptions& options, const Graph& graph, ValueId v, int dim);
// Is it known to have others?
bool size_varies(const QuantiseOptions& options, const Graph& graph, ValueId v, int dim);

// What centring and equalisation make of weights and biases, for programs that somebody else quantises: constants that
// change, by their names. Errors: those of `calibrate`.
Result<std::map<std::string, Tensor>> equalised_constants(Graph graph, const std::vector<std::vector<Tensor>>& samples,
                                                          const QuantiseOptions& options, const Sink& sink);

// Is there a scale on any of the graph's types?
bool is_quantised(const Graph& graph);

// Half-precision floats become f32, but for the graph's own inputs and outputs: before `quantise`.
void widen_half_precision(Graph& graph);

// What the program takes and gives: what it says itself; floats around a quantised body; the body's quantised values.
enum class Io : std::uint8_t { as_written, floats, quantised };
// Where a float node meets quantised ones, and at the graph's own ends as `io` says, explicit
// quantise/dequantise nodes go between.
void insert_boundaries(Graph& graph, Io io);
// An input that is only quantised becomes its quantised values, an output that was dequantised, too.
void quantise_io(Graph& graph);

}  // namespace tosaic
