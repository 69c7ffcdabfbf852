// SPDX-License-Identifier: Apache-2.0
#include "quantise/layer_means.h"

#include <algorithm>
#include <cmath>

#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

// The indices of one dim that one tap of the kernel meets.
struct Reach {
  std::int64_t first = 0, step = 1, count = 0;
  bool holds(std::int64_t i) const { return i >= first && i < first + count * step && (i - first) % step == 0; }
};

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
std::int64_t divided_down(std::int64_t a, std::int64_t b) { return -divided_up(-a, b); }

Reach reach(const Window& w, std::size_t dim, std::int64_t tap) {
  const std::size_t d = w.channel();
  const std::int64_t in = w.input[d + 1 + dim], out = w.output[d + dim], stride = w.stride[dim];
  const std::int64_t shift = tap * w.dilation[dim] - w.padding[dim];
  const std::int64_t few = w.transposed ? in : out,
                     many = w.transposed ? out : in;  // i * stride + shift is one of many
  const std::int64_t first = std::max<std::int64_t>(0, divided_up(-shift, stride)),
                     last = std::min(few - 1, divided_down(many - 1 - shift, stride));
  const std::int64_t count = std::max<std::int64_t>(0, last - first + 1);
  return w.transposed ? Reach{first, 1, count} : Reach{first * stride + shift, stride, count};
}

// Channels whose elements stand next to each other.
struct Run {
  std::size_t first, count;
  std::int64_t offset;
};
std::vector<Run> runs_of(const Ints& offsets) {
  std::vector<Run> runs;
  for (std::size_t c = 0; c < offsets.size(); ++c) {
    if (!runs.empty() && offsets[c] == runs.back().offset + static_cast<std::int64_t>(runs.back().count))
      ++runs.back().count;
    else
      runs.push_back({c, 1, offsets[c]});
  }
  return runs;
}

// x as lines along the last dim that the kernel moves on, or that positions have where it is one element.
class Lines {
 public:
  Lines(const Window& window, const Placed& x) : x_(x), channels_(x.offsets[window.channel()]) {
    runs_ = runs_of(channels_);
    const std::size_t channel = window.channel(), dims = window.kernel.size();
    for (std::size_t d = 0; d < x.offsets.size(); ++d)
      if (d != channel) around_.push_back(d);
    if (!around_.empty()) {
      along_ = x.offsets[around_.back()];
      around_.pop_back();
    }
    reach_.resize(dims);
    for (std::size_t d = 0; d < dims; ++d)
      for (std::int64_t k = 0; k < window.kernel[d]; ++k) reach_[d].push_back(reach(window, d, k));
    if (dims == 0) reach_.push_back({Reach{0, 1, static_cast<std::int64_t>(along_.size())}});
    taps_ = static_cast<std::size_t>(product(window.kernel));
    for (const std::size_t d : around_) count_ *= static_cast<std::int64_t>(x.offsets[d].size());
  }
  std::int64_t count() const { return count_; }
  std::size_t sums() const { return taps_ * channels_.size(); }

  // Adds what the lines from `first` to `end` have to the sums of [taps, channels].
  void add(std::int64_t first, std::int64_t end, double* sums) const {
    std::vector<double> line(reach_.back().size() * channels_.size());
    for (std::int64_t n = first; n < end; ++n) {
      std::int64_t offset = 0;
      Ints at(around_.size());
      std::int64_t rest = n;
      for (std::size_t d = around_.size(); d-- > 0;) {
        const Ints& dim = x_.offsets[around_[d]];
        at[d] = rest % static_cast<std::int64_t>(dim.size());
        rest /= static_cast<std::int64_t>(dim.size());
        offset += dim[static_cast<std::size_t>(at[d])];
      }
      sum_line(x_.x + offset, line.data());
      // The taps of the kernel's other dims that meet the line.
      const std::size_t others = taps_ / reach_.back().size();
      for (std::size_t other = 0; other < others; ++other) {
        if (!meets(other, at)) continue;
        double* to = sums + other * line.size();
        for (std::size_t i = 0; i < line.size(); ++i) to[i] += line[i];
      }
    }
  }

 private:
  bool meets(std::size_t other, const Ints& at) const {
    const std::size_t others = reach_.size() - 1;
    for (std::size_t d = others; d-- > 0;) {
      const std::vector<Reach>& taps = reach_[d];
      if (!taps[other % taps.size()].holds(at[at.size() - others + d])) return false;
      other /= taps.size();
    }
    return true;
  }

  // [taps of the last dim, channels]
  void sum_line(const float* x, double* line) const {
    const std::size_t channels = channels_.size();
    const std::vector<Reach>& taps = reach_.back();
    const auto add_run = simd::bulk_loops().add;
    std::fill_n(line, taps.size() * channels, 0.0);
    for (std::size_t k = 0; k < taps.size(); ++k) {
      double* to = line + k * channels;
      const Reach& r = taps[k];
      if (runs_.size() * 4 <= channels) {
        for (std::int64_t i = r.first; i < r.first + r.count * r.step; i += r.step)
          for (const Run& run : runs_)
            add_run(x + along_[static_cast<std::size_t>(i)] + run.offset, run.count, to + run.first);
        continue;
      }
      for (std::size_t c = 0; c < channels; ++c)
        for (std::int64_t i = r.first; i < r.first + r.count * r.step; i += r.step)
          to[c] += x[along_[static_cast<std::size_t>(i)] + channels_[c]];
    }
  }

  const Placed& x_;
  const Ints& channels_;
  std::vector<Run> runs_;
  std::vector<std::size_t> around_;  // all other dims
  Ints along_{0};
  std::vector<std::vector<Reach>> reach_;  // by dim and tap; of no dims one that meets all
  std::size_t taps_ = 1;
  std::int64_t count_ = 1;
};

}  // namespace

void LayerMeans::want(const Window& window) {
  const auto [first, end] = sums_.equal_range(window.x);
  if (std::none_of(first, end, [&](const auto& entry) { return entry.second.window == window; }))
    sums_.emplace(window.x, Sums{window, {}, 0});
}

void LayerMeans::see(ValueId v, const Look& look, ThreadPool& pool) {
  const auto [first, end] = sums_.equal_range(v);
  for (auto entry = first; entry != end; ++entry) {
    Sums& sums = entry->second;
    if (sums.looks == samples_ || look.count() != product(sums.window.input))
      continue;  // a table that the tensor's elements are chosen from
    ++sums.looks;
    const Lines lines(sums.window, look.placed());
    const auto parts = std::clamp<std::int64_t>(look.count() >> 15, 1, std::min<std::int64_t>(lines.count(), 16));
    std::vector<double> found(static_cast<std::size_t>(parts) * lines.sums());
    pool.run(parts, [&](std::int64_t part, int) {
      lines.add(lines.count() * part / parts, lines.count() * (part + 1) / parts,
                found.data() + static_cast<std::size_t>(part) * lines.sums());
    });
    const std::size_t count = lines.sums();
    sums.by_tap.resize(count);
    for (auto part = found.begin(); part != found.end(); part += static_cast<std::ptrdiff_t>(count))
      std::transform(part, part + static_cast<std::ptrdiff_t>(count), sums.by_tap.begin(), sums.by_tap.begin(),
                     std::plus<>());
  }
}

void LayerMeans::rename(const std::map<ValueId, ValueId>& now) {
  std::multimap<ValueId, Sums> renamed;
  for (auto& [v, sums] : sums_)
    if (const auto it = now.find(v); it != now.end()) {
      sums.window.x = it->second;
      renamed.emplace(it->second, std::move(sums));
    }
  sums_ = std::move(renamed);
}

std::vector<double> LayerMeans::of(const Window& window) const {
  const auto [first, end] = sums_.equal_range(window.x);
  const auto found = std::find_if(first, end, [&](const auto& entry) { return entry.second.window == window; });
  if (found == end || found->second.looks == 0) return {};
  const Sums& sums = found->second;
  const auto channels = static_cast<std::size_t>(window.channels());
  const std::size_t taps = sums.by_tap.size() / channels;
  const double positions = static_cast<double>(sums.looks) * static_cast<double>(product(window.output));
  std::vector<double> means(sums.by_tap.size());
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t k = 0; k < taps; ++k) means[c * taps + k] = sums.by_tap[k * channels + c] / positions;
  if (!std::ranges::all_of(means, [](double mean) { return std::isfinite(mean); })) means.clear();
  return means;
}

}  // namespace tosaic
