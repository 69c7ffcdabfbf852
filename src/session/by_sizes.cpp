// SPDX-License-Identifier: Apache-2.0
#include "session/by_sizes.h"

#include <list>

#include "ir/specialise.h"

namespace tosaic {
namespace {

class BySizes : public Runnable {
 public:
  BySizes(Interface interface, std::shared_ptr<const Graph> graph, MakeRunnable make)
      : Runnable(std::move(interface)), graph_(std::move(graph)), make_(std::move(make)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs) shapes.push_back(t.type.shape);
    TOSAIC_TRY(const Sizes sizes, sizes_of(*graph_, shapes));
    TOSAIC_TRY(Runnable* const variant, at(sizes));
    return variant->run(inputs);
  }
  Result<RunnablePtr> clone() const override {
    return RunnablePtr(std::make_unique<BySizes>(interface(), graph_, make_));
  }
  Status measure(bool on) override {
    measured_ = on;
    for (auto& [sizes, variant] : kept_) TOSAIC_CHECK(variant->measure(on));
    return {};
  }
  std::vector<OperationTime> profile() const override {
    return kept_.empty() ? std::vector<OperationTime>() : kept_.front().second->profile();
  }
  double device_seconds() const override { return kept_.empty() ? 0 : kept_.front().second->device_seconds(); }

 private:
  Result<Runnable*> at(const Sizes& sizes) {
    for (auto known = kept_.begin(); known != kept_.end(); ++known)
      if (known->first == sizes) {
        kept_.splice(kept_.begin(), kept_, known);
        return known->second.get();
      }
    TOSAIC_TRY(Graph graph, specialise(*graph_, sizes));
    TOSAIC_TRY(RunnablePtr made, make_(std::move(graph)));
    if (measured_) TOSAIC_CHECK(made->measure(true));
    kept_.emplace_front(sizes, std::move(made));
    if (kept_.size() > most_sizes) kept_.pop_back();
    return kept_.front().second.get();
  }

  std::shared_ptr<const Graph> graph_;
  MakeRunnable make_;
  std::list<std::pair<Sizes, RunnablePtr>> kept_;  // the one that ran last is the first
  bool measured_ = false;
};

}  // namespace

RunnablePtr by_sizes(std::shared_ptr<const Graph> graph, MakeRunnable make, Interface known) {
  for (ValueId v : graph->inputs) {
    known.inputs.push_back((*graph)[v].type);
    known.input_names.push_back((*graph)[v].name);
  }
  for (ValueId v : graph->outputs) {
    known.outputs.push_back((*graph)[v].type);
    known.output_names.push_back((*graph)[v].name);
  }
  return std::make_unique<BySizes>(std::move(known), std::move(graph), std::move(make));
}

}  // namespace tosaic
