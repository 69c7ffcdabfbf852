// SPDX-License-Identifier: Apache-2.0
// Where a program loses accuracy when its floats become integers or narrower floats: what `compare` (compile.hpp)
// gives.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tosaic/export.hpp"

namespace tosaic {

// One index of a tensor's dim of channels.
struct ChannelError {
  int dim = 0;
  std::int64_t channel = 0;
  double db = 0;
};

// A tensor as it is executed, against the float program, over all samples. Elements that are NaN or infinite in floats
// do not count.
struct TensorError {
  double db = 0;                              // signal to noise; infinity: equal; -infinity: nothing but noise
  double cosine = 1;                          // of the two as vectors
  std::optional<ChannelError> worst_channel;  // none: the tensor has one channel, or all are equal
};

// Why a layer loses accuracy, where that is known.
struct LossReason {
  std::string kind;      // "clipped", "outlier-channel", "unused-range", "product", "weights"; of narrow floats
                         // "overflow", "denormal", "operands", "weights"
  std::string sentence;  // "channel 3 reaches 12 times as far as the median of the others"
  std::string remedy;    // an option to paste, as the command line takes it: "--override 'conv2d: int16x8'"
};

// A call of the program as it is quantised: composites are decomposed, batch norms folded. A call whose result exists
// only to be bounded by the activation that reads it is one layer with that.
struct ComparedLayer {
  std::string value;                // the tensor, as plans and graphs call it
  std::string node;                 // of the exported graph; empty: not known
  std::vector<std::string> ops;     // "aten.conv2d.default", then what bounds it
  std::string module, place;        // "features.3.conv", "model.py:6"
  std::string where;                // both in short, for tables: "features.3.conv, model.py:6"
  std::string type;                 // as it is kept: "i8", "i16", "f16", "f32"
  std::vector<std::int64_t> shape;  //
  bool delegated = false;           // the target runs it, not the host
  TensorError accumulated;          // of all that was computed up to here
  std::optional<double> own_db;     // of the call alone, on the float program's operands; none: it loses nothing itself
  std::optional<double> weights_db;  // of that, what quantised weights alone cost
  std::optional<double> saturated;   // share of elements that the type's ends cut off
  std::optional<double> range_used;  // share of the type's range, zero included, that the values reach
  std::vector<LossReason> reasons;   //
};

struct ComparedOutput {
  std::string name, type;
  TensorError error;
  std::optional<TensorError> on_device;  // of what the device gives, where it was asked
};

// Where labels are given: in how many rows of the first output the largest element is the label's. A row of one element
// says 1 where it is above 0.5.
struct RightAnswers {
  std::size_t labels = 0, floats = 0, quantised = 0;
  double percent_in_floats() const { return 100.0 * static_cast<double>(floats) / static_cast<double>(labels); }
  double percent() const { return 100.0 * static_cast<double>(quantised) / static_cast<double>(labels); }
};

struct Comparison {
  std::string model, target, scheme;  // "int8"; of floats the narrowest: "f16"
  std::string device;                 // that the program was run on, too; empty: none
  std::size_t samples = 0;
  std::optional<RightAnswers> right;
  std::vector<ComparedOutput> outputs;
  std::vector<ComparedLayer> layers;  // the worst own error first
};

// A table for people, of the worst layers; 0: of all.
TOSAIC_API std::string comparison_text(const Comparison& comparison, std::size_t limit = 20);
// An object with all of it. Infinite numbers are null; `exact` says which of them stand for equal tensors.
TOSAIC_API std::string comparison_json(const Comparison& comparison);

}  // namespace tosaic
