// SPDX-License-Identifier: Apache-2.0
#include "api/by_sizes.h"

#include <list>

#include "ir/specialise.h"

namespace tosaic {
namespace {

class Variants {
 public:
  Variants(std::shared_ptr<const Graph> graph, MakeRunnable make) : graph_(std::move(graph)), make_(std::move(make)) {}

  Result<Runnable*> at(const Sizes& sizes) {
    for (auto known = kept_.begin(); known != kept_.end(); ++known)
      if (known->first == sizes) {
        kept_.splice(kept_.begin(), kept_, known);
        return &known->second;
      }
    TOSAIC_TRY(Graph graph, specialise(*graph_, sizes));
    TOSAIC_TRY(Runnable made, make_(std::move(graph)));
    if (measured_ && made.measure) TOSAIC_CHECK(made.measure(true));
    kept_.emplace_front(sizes, std::move(made));
    if (kept_.size() > most_sizes) kept_.pop_back();
    return &kept_.front().second;
  }

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) {
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs) shapes.push_back(t.type.shape);
    TOSAIC_TRY(const Sizes sizes, sizes_of(*graph_, shapes));
    TOSAIC_TRY(Runnable* const variant, at(sizes));
    return variant->run(inputs);
  }

  Status measure(bool on) {
    measured_ = on;
    for (auto& [sizes, variant] : kept_)
      if (variant.measure) TOSAIC_CHECK(variant.measure(on));
    return {};
  }
  const Runnable* last() const { return kept_.empty() ? nullptr : &kept_.front().second; }

 private:
  std::shared_ptr<const Graph> graph_;
  MakeRunnable make_;
  std::list<std::pair<Sizes, Runnable>> kept_;  // the one that ran last is the first
  bool measured_ = false;
};

}  // namespace

Runnable by_sizes(std::shared_ptr<const Graph> graph, MakeRunnable make, Runnable about) {
  auto variants = std::make_shared<Variants>(graph, make);
  Runnable r = about;
  for (ValueId v : graph->inputs) {
    r.inputs.push_back((*graph)[v].type);
    r.input_names.push_back((*graph)[v].name);
  }
  for (ValueId v : graph->outputs) {
    r.outputs.push_back((*graph)[v].type);
    r.output_names.push_back((*graph)[v].name);
  }
  r.run = [variants](const std::vector<Tensor>& inputs) { return variants->run(inputs); };
  r.reset = []() -> Status { return {}; };
  r.clone = [graph, make, about = std::move(about)]() -> Result<Runnable> { return by_sizes(graph, make, about); };
  r.measure = [variants](bool on) { return variants->measure(on); };
  r.profile = [variants] {
    const Runnable* last = variants->last();
    return last && last->profile ? last->profile() : std::vector<OperationTime>();
  };
  r.device_seconds = [variants] {
    const Runnable* last = variants->last();
    return last && last->device_seconds ? last->device_seconds() : 0;
  };
  return r;
}

}  // namespace tosaic
