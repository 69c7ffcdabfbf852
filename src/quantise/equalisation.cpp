// SPDX-License-Identifier: Apache-2.0
#include "quantise/equalisation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "quantise/equalisable_layers.h"
#include "quantise/observed_channels.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

// Fewer samples say too little of each channel: with one of MobileNetV2, other pictures exceeded what it had shown, and
// lost more than the steps were worth (12.1 dB without equalisation, 3.8 with; with eight samples 14.3 and 16.1).
constexpr std::size_t fewest_samples = 8, enough_samples = 16;
constexpr int largest_exponent = 6;

// Two of 16 bits are left to what exceeds the samples, for a clamp's bound stays where it is.
constexpr double of_sixteen_bits = 0.25;

// Of the values that have factors, but for those that are bounded by their reader.
std::map<ValueId, int> looked_at(const EqualisableProgram& program, const QuantisationPlan& plan) {
  std::map<ValueId, int> dim_of;
  for (ValueId v = 0; v < program.of.size(); ++v)
    if (program.varies(v) && !plan.hidden[v]) dim_of[v] = program.of[v]->dim;
  return dim_of;
}

// What a factor may be, and what it changes: the squared error of its readers is about rounded / s^2 + weights * s^2,
// next to each sample's energy. (Weights err in proportion to that, steps do not: they cost the quiet samples most.)
struct Choice {
  double limit = std::numeric_limits<double>::infinity();
  double rounded = 0, weights = 0;
  int exponent() const {
    if (!std::isfinite(limit) || rounded <= 0) return 0;
    const double best = weights > 0 ? std::sqrt(std::sqrt(rounded / weights)) : limit;
    const double factor = std::min(best, limit);
    return factor < 2 ? 0 : std::min(std::ilogb(factor), largest_exponent);
  }
};

class Equaliser {
 public:
  Equaliser(const Graph& graph, const QuantisationPlan& plan, const ObservedChannels& sizes,
            EqualisableProgram& program, const QuantiseOptions& options)
      : graph_(graph),
        plan_(plan),
        program_(program),
        sizes_(sizes),
        largest_weight_(options.sixteen_bits ? 32767 : 127),
        spare_(options.scheme == Scheme::int16x8 ? of_sixteen_bits : 1) {
    for (ValueId v = 0; v < program.of.size(); ++v)
      if (program.varies(v) && !plan.hidden[v] && !known(v)) make_one(program.of[v], program.factors);
    choices_.resize(program.factors.count());
    for (ValueId v = 0; v < program.of.size(); ++v)
      if (program.varies(v) && !plan.hidden[v]) limit(*program.of[v], v);
    for (const EqualisableLayer& layer : program.layers)
      if (!layer.read.empty()) weigh(layer);
  }

  // The power of two that the factor is.
  int exponent(Factors::Id id) const {
    const Factors::Id root = program_.factors.root(id);
    return root == Factors::one ? 0 : choices_[root].exponent();
  }

 private:
  Choice& choice(Factors::Id id) { return choices_[program_.factors.root(id)]; }
  const ChannelSizes& of(ValueId v) const { return sizes_.at(v); }
  bool known(ValueId v) const {
    const auto found = sizes_.find(v);
    return found != sizes_.end() && found->second.known();
  }

  // No channel may become larger than the largest one is, not on other samples either: the tensor's range stays.
  void limit(const ChannelFactors& channels, ValueId v) {
    if (channels.power <= 0) return;
    const ChannelSizes& sizes = of(v);
    const double lowest = sizes.lowest(), highest = sizes.highest();
    const auto room = [](double end, double of_channel) {
      return of_channel == 0 ? std::numeric_limits<double>::infinity() : end / of_channel;
    };
    for (std::size_t i = 0; i < channels.by_index.size(); ++i) {
      double& limit = choice(channels.by_index[i]).limit;
      const double up = spare_ * std::min(room(highest, sizes.likely_highest(i)), room(lowest, sizes.likely_lowest(i)));
      limit = std::min(limit, std::pow(up, 1.0 / channels.power));
    }
  }

  // What rounding costs a layer, but for a factor of a twelfth: a step's square for each product.
  void weigh(const EqualisableLayer& layer) {
    const ValueId x = layer.window.x;
    if (!known(x) || !plan_.quantised[x]) return;
    const ChannelSizes& sizes = of(x);
    const double step = plan_.wide[x] ? std::max(sizes.highest(), -sizes.lowest()) * int16_headroom / 32767
                                      : (sizes.highest() - sizes.lowest()) / 255;
    if (!(step > 0)) return;
    const Value& weight = graph_[layer.weight];
    const Shape& shape = weight.type.shape;
    const std::span<const float> w = weight.constant.as<float>();
    const auto taps = static_cast<std::size_t>(product(layer.window.kernel));
    std::vector<double> largest(layer.made.size());
    std::vector<double> squares(w.size() / taps);
    for_each_run(layer.window, shape, [&](std::size_t to, std::size_t, std::size_t run) {
      for (const float element : w.subspan(run * taps, taps)) {
        largest[to] = std::max<double>(largest[to], std::fabs(element));
        squares[run] += static_cast<double>(element) * element;
      }
    });
    const double floor = step * step / 12;  // quieter samples are lost in any case
    const double one = sizes.relative_one(floor);
    std::vector<double> square(sizes.channels());
    for (std::size_t i = 0; i < square.size(); ++i) square[i] = sizes.relative_square(i, floor);
    const bool alone = layer.window.channels() == layer.window.groups;  // its weights' scale takes all of the factor
    for_each_run(layer.window, shape, [&](std::size_t to, std::size_t from, std::size_t run) {
      Choice& c = choice(layer.read[from]);
      c.rounded += step * step * squares[run] * one;
      const double weight_step = largest[to] / (layer.planned->four_bits ? 7 : largest_weight_);
      if (!alone) c.weights += weight_step * weight_step * static_cast<double>(taps) * square[from];
    });
  }

  const Graph& graph_;
  const QuantisationPlan& plan_;
  EqualisableProgram& program_;
  const ObservedChannels& sizes_;
  const double largest_weight_;  // of quantised weights
  const double spare_;           // the part of the range that channels may reach
  std::vector<Choice> choices_;  // per factor; those of roots count
};

void rescale(Graph& graph, const EqualisableLayer& layer, const Equaliser& factors) {
  const auto exponents = [&](const std::vector<Factors::Id>& ids) {
    std::vector<int> found;
    for (const Factors::Id id : ids) found.push_back(factors.exponent(id));
    return found;
  };
  std::vector<int> made = exponents(layer.made), read = exponents(layer.read);
  const auto any = [](const std::vector<int>& all) { return std::ranges::any_of(all, [](int e) { return e != 0; }); };
  if (!any(made) && !any(read)) return;
  read.resize(static_cast<std::size_t>(layer.window.channels()));
  Value& weight = graph[layer.weight];
  const std::span<const float> w = weight.constant.as<float>();
  float* to = nullptr;
  Bytes scaled = Bytes::fresh(w.size(), to);
  const auto taps = static_cast<std::size_t>(product(layer.window.kernel));
  for_each_run(layer.window, weight.type.shape, [&](std::size_t result, std::size_t operand, std::size_t run) {
    for (std::size_t i = run * taps; i < (run + 1) * taps; ++i) to[i] = std::ldexp(w[i], made[result] - read[operand]);
  });
  weight.constant = std::move(scaled);
  if (layer.bias == no_value) return;
  Value& bias = graph[layer.bias];
  const std::span<const float> b = bias.constant.as<float>();
  scaled = Bytes::fresh(b.size(), to);
  for (std::size_t i = 0; i < b.size(); ++i) to[i] = std::ldexp(b[i], made[i]);
  bias.constant = std::move(scaled);
}

}  // namespace

Status equalise(Graph& graph, const std::vector<char>& inner, const std::vector<std::vector<Tensor>>& samples,
                const QuantiseOptions& options) {
  if (!options.equalisation || options.shares_weights || !options.per_channel || samples.size() < fewest_samples)
    return {};
  const QuantisationPlan plan = plan_quantisation({graph, inner}, options);
  EqualisableProgram program = find_equalisable(graph, plan, options);
  if (!program.any()) return {};
  TOSAIC_TRY(const ObservedChannels sizes,
             observe_channels(graph, looked_at(program, plan), samples, enough_samples, options));
  const Equaliser factors(graph, plan, sizes, program, options);
  for (const EqualisableLayer& layer : program.layers) rescale(graph, layer, factors);
  return {};
}

}  // namespace tosaic
