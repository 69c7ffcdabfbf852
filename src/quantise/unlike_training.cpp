// SPDX-License-Identifier: Apache-2.0
#include "quantise/unlike_training.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/median.h"
#include "quantise/first_norms.h"

namespace tosaic {
namespace {

constexpr std::size_t most_samples = 16;  // enough for means
// Right samples are near 1, wrong ones beyond these: docs/numerics.md has the figures.
constexpr double much_larger = 4;
// Few samples may be plain and dark.
double much_quieter(std::size_t samples) { return samples >= 8 ? 1.0 / 10 : samples >= 4 ? 1.0 / 100 : 0; }

// What a norm sees, in one number each: 1 in training.
struct Summary {
  double size = 0, variance = 0;  // the mean square is size^2: it has what means are off by, too
};
std::optional<Summary> summary_of(const FirstNorm& norm, const SeenChannels& seen) {
  std::vector<double> squares, variances;
  for (std::size_t c = 0; c < norm.channels.size(); ++c) {
    if (!(norm.channels[c].deviation > 0)) continue;
    squares.push_back(seen.squares[c] / seen.count);
    variances.push_back(seen.variance(c));
  }
  if (squares.empty() || !std::ranges::all_of(squares, [](double x) { return std::isfinite(x); })) return std::nullopt;
  return Summary{std::sqrt(median(squares)), median(variances)};
}

// Inputs (x - centre) / unit would be as in training.
struct Normalisation {
  double centre = 0, unit = 1;
  double of(double x) const { return (x - centre) / unit; }
};

// All elements x of input number `i` become f(x).
template <class F>
std::vector<Tensor> with_input(std::vector<Tensor> sample, std::size_t i, const F& f) {
  Tensor& input = sample[i];
  std::vector<double> values(static_cast<std::size_t>(input.type.shape.elements()));
  for (std::size_t e = 0; e < values.size(); ++e)
    values[e] = f(element_as_double(input.type.dtype, input.data.data(), e));
  input.data = constant_bytes(input.type.dtype, values);
  return sample;
}

// What brings the variances of inputs z to 1, and then their means to 0 with least squares, if the norm's channels have
// the means `zero` and `one` for inputs of nothing but 0 and 1, and the way there is affine.
Normalisation affine_fit(const FirstNorm& norm, const SeenChannels& seen, const SeenChannels& zero,
                         const SeenChannels& one) {
  std::vector<double> variances;
  for (std::size_t c = 0; c < norm.channels.size(); ++c)
    if (norm.channels[c].deviation > 0) variances.push_back(seen.variance(c));
  const double scale = 1 / std::sqrt(median(variances));
  double product = 0, square = 0;
  for (std::size_t c = 0; c < norm.channels.size(); ++c) {
    const double z = zero.mean(c), slope = one.mean(c) - z;
    product += slope * (scale * (seen.mean(c) - z) + z);
    square += slope * slope;
  }
  const double shift = square > 0 ? -product / square : 0;
  return {-shift / scale, 1 / scale};
}

// Found by trying, and again from there, as the way from the input to the norm need not be affine.
std::optional<Normalisation> fitting(FirstNorms& start, std::size_t which,
                                     std::span<const std::vector<Tensor>> samples) {
  constexpr int most_tries = 6;
  constexpr double near = 1.5;
  const FirstNorm& norm = start.norms()[which];
  if (norm.inputs.size() != 1) return std::nullopt;
  const auto constant = [&](double value) {
    const std::vector<Tensor> sample = with_input(samples[0], norm.inputs[0], [&](double) { return value; });
    return start.see({&sample, 1});
  };
  const auto zero = constant(0), one = constant(1);
  if (zero.empty() || one.empty()) return std::nullopt;
  Normalisation found;
  for (int i = 0; i < most_tries; ++i) {
    std::vector<std::vector<Tensor>> changed;
    for (const std::vector<Tensor>& sample : samples)
      changed.push_back(with_input(sample, norm.inputs[0], [&](double x) { return found.of(x); }));
    const auto seen = start.see(changed);
    const auto summary = seen.empty() ? std::nullopt : summary_of(norm, seen[which]);
    if (!summary) return std::nullopt;
    if (i > 0 && std::max(summary->size, 1 / summary->size) < near && std::fabs(summary->variance - 1) < near - 1)
      return found;
    const Normalisation more = affine_fit(norm, seen[which], zero[which], one[which]);
    if (!std::isfinite(more.centre) || !std::isfinite(more.unit)) return std::nullopt;
    found = {found.centre + more.centre * found.unit, found.unit * more.unit};
  }
  return std::nullopt;
}

struct Ends {
  double lowest = INFINITY, highest = -INFINITY;
};
Ends ends_of(std::span<const std::vector<Tensor>> samples, std::size_t input) {
  Ends ends;
  for (const std::vector<Tensor>& sample : samples) {
    const Tensor& x = sample[input];
    for (std::size_t e = 0; e < static_cast<std::size_t>(x.type.shape.elements()); ++e) {
      const double value = element_as_double(x.type.dtype, x.data.data(), e);
      ends = {std::min(ends.lowest, value), std::max(ends.highest, value)};
    }
  }
  return ends;
}

// As people write them: 0.0039, 57, 260.
std::string two_digits(double x) {
  if (!(x > 0) || !std::isfinite(x)) return fmt::format("{}", x);
  const double unit = std::pow(10, std::floor(std::log10(x)) - 1);
  return fmt::format("{:.4g}", std::round(x / unit) * unit);
}

std::string text_of(const Normalisation& how, const Ends& ends) {
  const bool centred = std::fabs(how.centre) > (ends.highest - ends.lowest) / 20;
  if (!centred && how.unit < 1) return fmt::format("x * {}", two_digits(1 / how.unit));
  if (!centred) return fmt::format("x / {}", two_digits(how.unit));
  return fmt::format("(x {} {}) / {}", how.centre < 0 ? '+' : '-', two_digits(std::fabs(how.centre)),
                     two_digits(how.unit));
}

}  // namespace

void say_unlike_training(const Graph& graph, const std::vector<TrainedNorm>& norms,
                         std::span<const std::vector<Tensor>> samples, int threads, const Sink& sink) {
  if (!sink || samples.empty() || norms.empty()) return;
  std::optional<FirstNorms> start = FirstNorms::of(graph, norms, threads);
  if (!start) return;
  std::vector<std::vector<Tensor>> taken;
  const std::size_t count = std::min(samples.size(), most_samples);
  for (std::size_t k = 0; k < count; ++k) taken.push_back(samples[k * samples.size() / count]);
  const std::vector<SeenChannels> seen = start->see(taken);
  std::vector<char> said(graph.inputs.size(), 0);  // several norms may read one input
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const FirstNorm& norm = start->norms()[i];
    const std::optional<Summary> found = summary_of(norm, seen[i]);
    const std::size_t input = norm.inputs[0];
    if (!found || said[input]) continue;
    const bool larger = found->size > much_larger;
    const bool quieter = found->variance < much_quieter(taken.size());
    if (!larger && !quieter) continue;
    const Ends ends = ends_of(taken, input);
    if (ends.lowest == ends.highest) continue;  // what is constant is said elsewhere
    said[input] = 1;
    const std::string sees =
        larger
            ? fmt::format("sees values {} times as large as in training", two_digits(found->size))
            : fmt::format("sees {} times less variation than in training", two_digits(1 / std::sqrt(found->variance)));
    Diagnostic d = warning("calibrate.normalisation",
                           fmt::format("input '{}' lies in {:.4g}..{:.4g} in the samples, and this batch norm {}",
                                       graph[graph.inputs[input]].name, ends.lowest, ends.highest, sees))
                       .hint("give samples that are normalised as the inputs in training were");
    if (const auto how = fitting(*start, i, taken))
      d.notes.push_back(fmt::format("of samples {} it would see about what it saw in training", text_of(*how, ends)));
    sink(located(std::move(d), norm.loc));
  }
}

}  // namespace tosaic
