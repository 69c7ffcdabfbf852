// SPDX-License-Identifier: Apache-2.0
// A program on a whole data set: how often it is right, how far it is from floats, and how fast it goes through.
//
//   auto session = tosaic::Session::open("net.pte", {.threads = 1});
//   auto floats = tosaic::Session::open("net.pt2", {.threads = 1});
//   auto data = tosaic::open_data_set("test.npz", "", floats->inputs());
//   auto found = tosaic::evaluate(*session, &*floats, *data);
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tosaic/result.hpp"
#include "tosaic/tensor.hpp"

namespace tosaic {

class Session;  // session.hpp

struct LabelledSample {
  std::vector<OwnedTensor> inputs;  // one per tensor input, in order
  // Which element along the last axis of the first output should be the largest, one for each of its rows; negative:
  // that row does not count. Empty: there are none.
  std::vector<std::int64_t> labels;
  std::string name;  // for people: "cats/12.npy"
  // What the program in floats gives for it, where somebody ran it before: real numbers. Empty: it is run, if there is
  // one.
  std::vector<Output> floats = {};
};
// A data set, read as it is used.
struct LabelledData {
  // Fills the next sample; false: there are no more. Called by one thread at a time, but by several.
  std::function<Result<bool>(LabelledSample& sample)> next;
  std::size_t expected = 0;                   // how many there seem to be; 0: not known
  std::function<std::size_t()> skipped = {};  // how many could not be read so far, where the source tells
};
// From files: a .npz with an array per input (named after it, or input_N), a .npy for a program with one input, or a
// folder of such files. An array holds one sample, or several along its first axis. Labels: an array "labels" of each
// .npz; or the names of a folder's folders in their order (numbers: themselves); or the file `labels`: a .npy of
// integers, or lines "NAME,LABEL" or "LABEL". A file of a folder that cannot be read is skipped, with a warning
// (evaluate.skipped). Errors: file.*, evaluate.data, evaluate.labels.
TOSAIC_API Result<LabelledData> open_data_set(const std::string& path, const std::string& labels,
                                              const std::vector<TensorInfo>& inputs, const Messages& messages = {});

struct EvaluateOptions {
  int workers = 0;         // samples that run at once; 0: Session::useful_clones
  std::size_t limit = 0;   // samples at most; 0: all
  std::size_t worst = 10;  // how many samples to name
  std::function<void(std::size_t done, std::size_t expected)> progress;
  std::function<bool()> cancelled;  // true: run.cancelled
  // What came out for a sample, in no certain order, never twice at once. `floats` is empty without them.
  std::function<void(std::size_t sample, const std::vector<Output>& outputs, const std::vector<Output>& floats)> each;
};

// How often one executor says what the labels say.
struct RightShare {
  std::size_t labels = 0, first = 0, among_five = 0;
  double top1() const { return labels ? 100.0 * static_cast<double>(first) / static_cast<double>(labels) : 0; }
  double top5() const { return labels ? 100.0 * static_cast<double>(among_five) / static_cast<double>(labels) : 0; }
};
struct Confusion {
  std::int64_t label = 0, said = 0;
  std::size_t times = 0, times_in_floats = 0;
};
struct EvaluatedOutput {
  std::string name, type;
  std::optional<double> db;     // signal to noise against floats over all samples; infinity: equal
  std::optional<double> equal;  // of integers: the share of elements that are equal
};
struct WorstSample {
  std::size_t sample = 0;
  std::string name;
  double db = 0;                                         // of its worst output
  std::optional<std::int64_t> label, said, floats_said;  // of its first row
};

struct Evaluated {
  std::string program, device, floats;  // `floats`: the program in floats; empty: none
  std::size_t samples = 0, skipped = 0;
  std::size_t classes = 0;  // that the first output tells apart; 0: it does not
  std::optional<RightShare> right, right_in_floats;
  std::optional<double> agreement;   // percent of rows where the program chooses what floats choose
  std::vector<Confusion> confusion;  // every pair of label and answer that came up, the most frequent mistakes first
  std::vector<EvaluatedOutput> outputs;  // with floats
  std::vector<WorstSample> worst;        // with floats, the worst first
  int workers = 1;
  double seconds = 0;                              // in all
  double run_seconds = 0, floats_run_seconds = 0;  // median of one run, by one worker
  double samples_per_second() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }
};

// `session` and `floats` (or null) are cloned, one for each worker: load them with threads = 1. Samples are
// independent: states are reset between them. A sample that brings what floats give is not run in floats. Inputs change
// their width where a session takes other floats or integers, and are quantised where it says a scale. Errors:
// evaluate.nothing (no sample), evaluate.labels, run.*.
TOSAIC_API Result<Evaluated> evaluate(const Session& session, const Session* floats, const LabelledData& samples,
                                      const EvaluateOptions& options = {});
// A table for people, and an object with all of it.
TOSAIC_API std::string evaluation_text(const Evaluated& evaluated);
TOSAIC_API std::string evaluation_json(const Evaluated& evaluated);

}  // namespace tosaic
