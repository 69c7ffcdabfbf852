// SPDX-License-Identifier: Apache-2.0
#include "evaluate/score.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "compare/chosen_class.h"
#include "ir/tensor.h"

namespace tosaic {
namespace {

// A result as real numbers.
class Reals {
 public:
  Reals(const OwnedTensor& tensor, const Argument& described) : tensor_(tensor) {
    if (!described.tensor || described.tensor->scale.empty()) return;
    scales_ = &*described.tensor;
    for (std::size_t d = tensor.sizes.size(); static_cast<int>(--d) > scales_->axis && d < tensor.sizes.size();)
      inner_ *= static_cast<std::size_t>(tensor.sizes[d]);
  }
  std::size_t size() const {
    std::size_t count = 1;
    for (std::int64_t s : tensor_.sizes) count *= static_cast<std::size_t>(s);
    return count;
  }
  // Numbers that stand for themselves, such as classes. Integers of 8 and 16 bits are quantised values, whatever their
  // scale is.
  bool counts() const { return !scales_ && is_integer(tensor_.dtype) && storage_size(tensor_.dtype) >= 4; }
  double operator[](std::size_t i) const {
    const double value = element_as_double(tensor_.dtype, tensor_.data.data(), i);
    if (!scales_) return value;
    const std::size_t channel = scales_->axis < 0 ? 0 : i / inner_ % scales_->scale.size();
    return scales_->scale[channel] * (value - static_cast<double>(scales_->zero_point[channel]));
  }
  std::string text() const { return to_string(TensorType{tensor_.dtype, Shape(tensor_.sizes), {}}); }
  const std::vector<std::int64_t>& sizes() const { return tensor_.sizes; }

 private:
  const OwnedTensor& tensor_;
  const TensorInfo* scales_ = nullptr;
  std::size_t inner_ = 1;
};

// The rows of a first output, and what each chooses.
class Choices {
 public:
  explicit Choices(const Reals& output) : output_(output) {
    if (output.counts()) return;  // the program chooses itself
    classes_ = output.sizes().empty() ? 1 : static_cast<std::size_t>(output.sizes().back());
  }
  std::size_t rows() const { return classes_ == 0 ? 0 : output_.size() / std::max<std::size_t>(classes_, 1); }
  std::size_t classes() const { return output_.counts() ? 0 : std::max<std::size_t>(classes_, 2); }
  std::int64_t said(std::size_t row) const {
    if (output_.counts()) return static_cast<std::int64_t>(output_[row]);
    return chosen_class(classes_, [&](std::size_t c) { return output_[row * classes_ + c]; });
  }
  bool among_five(std::size_t row, std::int64_t label) const {
    if (classes_ == 1 || output_.counts()) return said(row) == label;
    const auto wanted = static_cast<std::size_t>(label);
    const std::size_t begin = row * classes_;
    std::size_t before = 0;
    for (std::size_t c = 0; c < classes_; ++c) {
      const double value = output_[begin + c], least = output_[begin + wanted];
      before += value > least || (value == least && c < wanted);
    }
    return before < 5;
  }

 private:
  const Reals& output_;
  std::size_t classes_ = 1;
};

void count(const Choices& choices, std::size_t row, std::int64_t label, RightShare& right, Tally::Pairs& pairs) {
  const std::int64_t said = choices.said(row);
  ++right.labels;
  right.first += said == label;
  right.among_five += choices.among_five(row, label);
  ++pairs[{label, said}];
}

Status check_labels(const Choices& choices, const Reals& output, const LabelledSample& sample) {
  if (sample.labels.empty()) return {};
  if (choices.rows() != sample.labels.size())
    return error("evaluate.labels", fmt::format("{} has {} label{}, and the program's first output is {}: {} row{}",
                                                sample.name, sample.labels.size(), sample.labels.size() == 1 ? "" : "s",
                                                output.text(), choices.rows(), choices.rows() == 1 ? "" : "s"))
        .hint("labels say which element along the last axis should be the largest");
  const auto most = std::ranges::max(sample.labels);
  if (choices.classes() > 0 && most >= static_cast<std::int64_t>(choices.classes()))
    return error("evaluate.labels", fmt::format("{} has the label {}, and the program tells {} classes apart: 0 to {}",
                                                sample.name, most, choices.classes(), choices.classes() - 1))
        .hint("count the classes from 0, in the order of the program's output; negative labels do not count");
  return {};
}

OutputScore difference(const Reals& got, const Reals& wanted) {
  OutputScore score;
  score.elements = wanted.size();
  for (std::size_t i = 0; i < score.elements; ++i) {
    const double is = got[i], should = wanted[i];
    score.equal += is == should;
    if (!std::isfinite(should)) continue;
    score.signal += should * should;
    score.noise += (is - should) * (is - should);
  }
  return score;
}

void add(RightShare& to, const RightShare& other) {
  to.labels += other.labels;
  to.first += other.first;
  to.among_five += other.among_five;
}

}  // namespace

void Tally::add(const Tally& other) {
  tosaic::add(right, other.right);
  tosaic::add(right_in_floats, other.right_in_floats);
  for (const auto& [pair, times] : other.pairs) pairs[pair] += times;
  for (const auto& [pair, times] : other.pairs_in_floats) pairs_in_floats[pair] += times;
  rows += other.rows;
  agreed += other.agreed;
}

Result<SampleScore> score_of(const Results& got, const std::optional<Results>& floats, const LabelledSample& sample) {
  SampleScore score;
  if (floats) {
    if (floats->values.size() != got.values.size())
      return error("evaluate.outputs",
                   fmt::format("the program gives {} results, in floats {}", got.values.size(), floats->values.size()))
          .hint("hold a program against the .pt2 that it was compiled from");
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      score.outputs.emplace_back();
      if (!got.values[i].tensor || !floats->values[i].tensor) continue;
      const Reals is(*got.values[i].tensor, got.described[i]), should(*floats->values[i].tensor, floats->described[i]);
      if (is.sizes() != should.sizes())
        return error("evaluate.outputs", fmt::format("output {} is {}, in floats {}", i, is.text(), should.text()))
            .hint("hold a program against the .pt2 that it was compiled from");
      score.outputs[i] = difference(is, should);
    }
  }
  const auto first = std::ranges::find_if(got.values, [](const Output& o) { return o.tensor.has_value(); });
  if (first == got.values.end()) return score;
  const auto at = static_cast<std::size_t>(first - got.values.begin());
  const Reals output(*first->tensor, got.described[at]);
  const Choices choices(output);
  TOSAIC_CHECK(check_labels(choices, output, sample));
  score.classes = choices.classes();
  const bool labelled = !sample.labels.empty();
  std::optional<Reals> in_floats;
  std::optional<Choices> float_choices;
  if (floats && floats->values[at].tensor)
    float_choices.emplace(in_floats.emplace(*floats->values[at].tensor, floats->described[at]));
  for (std::size_t row = 0; row < choices.rows(); ++row) {
    if (labelled && sample.labels[row] >= 0) {
      count(choices, row, sample.labels[row], score.tally.right, score.tally.pairs);
      if (float_choices)
        count(*float_choices, row, sample.labels[row], score.tally.right_in_floats, score.tally.pairs_in_floats);
    }
    if (!float_choices) continue;
    ++score.tally.rows;
    score.tally.agreed += choices.said(row) == float_choices->said(row);
  }
  if (choices.rows() == 0) return score;
  if (labelled) score.label = sample.labels[0];
  score.said = choices.said(0);
  if (float_choices) score.floats_said = float_choices->said(0);
  return score;
}

}  // namespace tosaic
