// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/system/thread_pool.h"
#include "compare/alone.h"
#include "compare/answers.h"
#include "compare/difference.h"
#include "compare/reasons.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {
namespace {

// One layer, and what was seen of it so far.
struct LayerWork {
  Layer layer;
  Difference accumulated;
  std::optional<Alone> alone, with_weights;
  Difference own, weights;
  bool seen = false;
};

struct OutputWork {
  std::size_t number;
  ValueId quantised, wanted;
  Difference difference, on_device;
  bool seen = false;
};

class Comparing {
 public:
  Comparing(const FloatProgram& floats, const Graph& quantised, const CompareHow& how)
      : floats_(floats),
        quantised_(quantised),
        how_(how),
        counterparts_(quantised, floats.graph),
        read_by_(consumers(quantised)) {}

  Status prepare(std::size_t samples) {
    if (!how_.labels.empty()) { TOSAIC_TRY(answers_, Answers::make(how_.labels, samples)); }
    const auto difference = [&](ValueId v, int channel_dim) { return Difference(type_of(v), channel_dim); };
    for (Layer& layer : how_.outputs_only ? std::vector<Layer>() : layers_of(quantised_, floats_, counterparts_)) {
      const Difference none = difference(layer.result, layer.channel_dim);
      const Difference real(floats_.graph[layer.wanted].type, -1);
      layers_.push_back({std::move(layer), none, {}, {}, none, real});
    }
    ThreadPool::shared(how_.threads).run(static_cast<std::int64_t>(layers_.size()), [&](std::int64_t i, int) {
      LayerWork& work = layers_[static_cast<std::size_t>(i)];
      const bool outside = is_outside(work.layer);
      work.alone = Alone::as_executed(quantised_, work.layer, counterparts_, outside ? nullptr : how_.spec,
                                      outside ? nullptr : how_.narrow, 1);
      if (work.alone)
        work.with_weights = Alone::with_weights(quantised_, floats_.graph, work.layer, counterparts_, how_.narrow, 1);
    });
    std::vector<char> of_floats(floats_.graph.values.size(), 0), of_quantised(quantised_.values.size(), 0);
    for (const LayerWork& work : layers_) {
      of_quantised[work.layer.result] = 1;
      of_floats[work.layer.wanted] = 1;
      for (const auto* alone : {&work.alone, &work.with_weights})
        if (*alone)
          for (ValueId v : (*alone)->reads()) of_floats[v] = 1;
    }
    for (std::size_t i = 0; i < floats_.graph.outputs.size() && i < quantised_.outputs.size(); ++i) {
      const ValueId y = quantised_.outputs[i], wanted = floats_.graph.outputs[i];
      if (!is_float(floats_.graph[wanted].type.dtype)) continue;
      const auto made_by = std::ranges::find(layers_, wanted, [](const LayerWork& work) { return work.layer.wanted; });
      const int last = quantised_[y].type.rank() - 1;
      const Difference none = difference(y, made_by == layers_.end() ? last : made_by->layer.channel_dim);
      outputs_.push_back({i, y, wanted, none, none});
      of_quantised[y] = of_floats[wanted] = 1;
    }
    TOSAIC_TRY(reference_, Watched::make(floats_.graph, of_floats, {}, how_.threads));
    if (how_.narrow) {
      TOSAIC_TRY(executed_, Watched::of_lowered(quantised_, how_.narrow->executed, of_quantised, how_.threads));
      return {};
    }
    TOSAIC_TRY(executed_,
               Watched::make(quantised_, of_quantised, {.spec = how_.spec, .outside = how_.outside}, how_.threads));
    return {};
  }

  Status see(const std::vector<Tensor>& sample) {
    TOSAIC_CHECK(reference_->run(sample));
    TOSAIC_CHECK(executed_->run(sample));
    if (answers_) TOSAIC_CHECK(see_answer());
    if (how_.device) TOSAIC_CHECK(see_device(sample));
    for (OutputWork& output : outputs_)
      output.seen |= add(output.difference, output.wanted, executed_->at(output.quantised));
    ThreadPool::shared(how_.threads).run(static_cast<std::int64_t>(layers_.size()), [&](std::int64_t i, int) {
      LayerWork& work = layers_[static_cast<std::size_t>(i)];
      work.seen |= add(work.accumulated, work.layer.wanted, executed_->at(work.layer.result));
      see_alone(work.alone, work.own, work.layer.wanted);
      see_alone(work.with_weights, work.weights, work.layer.wanted);
    });
    return {};
  }

  Comparison result() const {
    Comparison found;
    if (answers_) found.right = answers_->right();
    for (const OutputWork& output : outputs_)
      if (output.seen)
        found.outputs.push_back({floats_.graph[output.wanted].name,
                                 std::string(name_of(type_of(output.quantised).dtype)), output.difference.error(),
                                 how_.device ? std::optional(output.on_device.error()) : std::nullopt});
    for (const LayerWork& work : layers_)
      if (work.seen) found.layers.push_back(told(work));
    // What loses nothing itself is last, the worst of it first.
    std::ranges::stable_sort(found.layers, [](const ComparedLayer& a, const ComparedLayer& b) {
      if (a.own_db.has_value() != b.own_db.has_value()) return a.own_db.has_value();
      return a.own_db ? *a.own_db < *b.own_db : a.accumulated.db < b.accumulated.db;
    });
    return found;
  }

 private:
  Status see_device(const std::vector<Tensor>& sample) {
    TOSAIC_TRY(const std::vector<Tensor> given, how_.device(sample));
    for (OutputWork& output : outputs_)
      if (output.number < given.size()) add(output.on_device, output.wanted, &given[output.number]);
    return {};
  }

  Status see_answer() {
    const OutputWork* first = outputs_.empty() ? nullptr : &outputs_.front();
    const Tensor* wanted = first ? reference_->at(first->wanted) : nullptr;
    const Tensor* got = first ? executed_->at(first->quantised) : nullptr;
    if (wanted && got) return answers_->add(*wanted, *got);
    return error("compare.labels", "the program's first output has no floats that could name a class")
        .hint("leave the labels out");
  }

  // As it is kept.
  TensorType type_of(ValueId v) const {
    const TensorType& type = quantised_[v].type;
    return how_.narrow && how_.narrow->kept[v] ? type.with(*how_.narrow->kept[v]) : type;
  }

  bool is_outside(const Layer& layer) const {
    const std::size_t n = layer.calls.back();
    return n < how_.outside.size() && how_.outside[n];
  }

  bool add(Difference& to, ValueId wanted, const Tensor* got) const {
    const Tensor* real = reference_->at(wanted);
    if (!real || !got || real->type.shape != got->type.shape || !to.takes(*got)) return false;
    to.add(*real, *got);
    return true;
  }

  void see_alone(std::optional<Alone>& alone, Difference& to, ValueId wanted) const {
    if (!alone) return;
    const std::optional<Tensor> got = alone->run(*reference_);
    if (!got || !add(to, wanted, &*got)) alone.reset();  // half of the samples would be no figure
  }

  // The layer for which alone this one is computed, as a term; null: there is none. Next to a larger term its error
  // is small, as that of the mean that a norm subtracts, or of the fine part of weights in 16 bits.
  const LayerWork* sum_of(const LayerWork& work) const {
    const ValueId term = work.layer.result;
    if (std::ranges::find(quantised_.outputs, term) != quantised_.outputs.end()) return nullptr;
    const std::vector<std::uint32_t>& readers = read_by_[term];
    if (readers.size() != 1) return nullptr;
    const std::size_t reader = readers[0];
    const Node& node = quantised_.nodes[reader];
    if (!find_aten(node.op).rule->adds || std::ranges::count(node.inputs, term) != 1) return nullptr;
    const auto is_sum = [&](const LayerWork& other) {
      return other.seen && std::ranges::find(other.layer.calls, reader) != other.layer.calls.end() &&
             quantised_[other.layer.result].type.shape == quantised_[node.outputs[0]].type.shape;
    };
    const auto sum = std::ranges::find_if(layers_, is_sum);
    return sum == layers_.end() ? nullptr : &*sum;
  }

  // Who of its group reaches furthest; empty: it does itself.
  std::string largest_of_group(const LayerWork& work) const {
    const ValueId group = floats_.group[work.layer.wanted];
    const LayerWork* largest = &work;
    for (const LayerWork& other : layers_)
      if (other.seen && group != no_value && floats_.group[other.layer.wanted] == group &&
          other.accumulated.largest_of_all() > largest->accumulated.largest_of_all())
        largest = &other;
    return largest == &work ? "" : floats_.graph[largest->layer.wanted].name;
  }

  ComparedLayer told(const LayerWork& work) const {
    const Layer& layer = work.layer;
    const Value& result = quantised_[layer.result];
    ComparedLayer row;
    row.value = floats_.graph[layer.wanted].name;
    const LocRef& loc = quantised_.nodes[layer.calls.front()].loc;
    if (loc) row.node = loc->name, row.module = loc->module_path;
    row.place = place_text(loc);
    row.where = layer_text(loc);
    for (std::size_t n : layer.calls) row.ops.push_back(quantised_.nodes[n].op.text());
    row.type = name_of(type_of(layer.result).dtype);
    row.shape = result.type.shape.sizes();
    row.delegated = !is_outside(layer);
    row.accumulated = work.accumulated.error();
    if (work.alone) {
      const LayerWork* sum = sum_of(work);
      row.own_db = sum ? work.own.db_beside(sum->accumulated) : work.own.db();
    }
    if (work.with_weights) row.weights_db = work.weights.db();
    row.saturated = work.accumulated.saturated();
    row.range_used = work.accumulated.range_used();
    if (result.type.quantised() || how_.narrow)
      row.reasons = loss_reasons({.quantised = &quantised_,
                                  .narrow = how_.narrow,
                                  .layer = &layer,
                                  .accumulated = &work.accumulated,
                                  .own_db = row.own_db,
                                  .weights_db = row.weights_db,
                                  .worst_channel = work.alone ? work.own.error().worst_channel : std::nullopt,
                                  .node = row.node,
                                  .largest_of_group = largest_of_group(work),
                                  .takes_int16 = !how_.spec || how_.spec->has(tosa::Feature::int16),
                                  .other_samples = how_.other_samples});
    return row;
  }

  const FloatProgram& floats_;
  const Graph& quantised_;
  const CompareHow& how_;
  const Counterparts counterparts_;
  const std::vector<std::vector<std::uint32_t>> read_by_;  // of quantised_
  std::vector<LayerWork> layers_;
  std::vector<OutputWork> outputs_;
  std::optional<Watched> reference_, executed_;
  std::optional<Answers> answers_;
};

}  // namespace

Result<Comparison> compare_programs(const FloatProgram& floats, const Graph& quantised,
                                    const std::vector<std::vector<Tensor>>& samples, const CompareHow& how) {
  if (!how.narrow && !is_quantised(quantised))
    return error("compare.nothing-quantised", "nothing of the program is quantised: there is nothing to compare")
        .hint("`tosaic explain` says of each node why it stays float");
  Comparing comparing(floats, quantised, how);
  TOSAIC_CHECK(comparing.prepare(samples.size()));
  for (std::size_t done = 0; done < samples.size();) {
    if (how.cancelled && how.cancelled()) return error("compile.cancelled", "the comparison was cancelled");
    TOSAIC_CHECK(comparing.see(samples[done]));
    ++done;
    if (how.progress) how.progress(done, samples.size());
  }
  Comparison found = comparing.result();
  found.samples = samples.size();
  return found;
}

}  // namespace tosaic
