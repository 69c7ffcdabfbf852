// SPDX-License-Identifier: Apache-2.0
#include "compare/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "compare/narrow_floats.h"

namespace tosaic {
namespace {

Tensor in_f32(const Tensor& x) {
  if (x.type.dtype == DType::f32) return x;
  return {x.type.with(DType::f32), converted({x.type, x.data.data()}, DType::f32)};
}

std::span<const float> floats_of(const Tensor& x) { return TensorView{x.type, x.data.data()}.as<float>(); }

// Of numbers that a narrow float has with all its digits, rounded to them.
std::pair<double, double> normal_range(DType type) {
  constexpr double none = std::numeric_limits<double>::infinity();
  if (type == DType::f16) return {0x1p-14, 65520};
  if (type == DType::bf16) return {0x1p-126, 0x1.ffp127};
  return {0, none};
}

}  // namespace

double signal_to_noise_db(double signal, double noise) {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

Difference::Difference(const TensorType& type, int channel_dim) : type_(type), channel_dim_(channel_dim) {
  if (channel_dim >= 0) {
    channels_ = static_cast<std::size_t>(type.shape.size(channel_dim));
    for (int d = channel_dim + 1; d < type.rank(); ++d) inner_ *= static_cast<std::size_t>(type.shape.size(d));
  }
  by_channel_.resize(channels_);
  largest_.resize(channels_);
  if (type.quantised()) lowest_ = highest_ = type.scales->zero_point[0];
}

bool Difference::takes(const Tensor& got) const {
  return got.type.shape == type_.shape && (!type_.quantised() || got.type.dtype == type_.dtype);
}

void Difference::add(const Tensor& wanted, const Tensor& got) {
  const Tensor reals = in_f32(wanted);
  const TensorView view{got.type, got.data.data()};
  if (!type_.quantised())
    add_elements<float>(floats_of(reals), floats_of(in_f32(got)));
  else if (got.type.dtype == DType::i16)
    add_elements<std::int16_t>(floats_of(reals), view.as<std::int16_t>());
  else
    add_elements<std::int8_t>(floats_of(reals), view.as<std::int8_t>());
}

template <class T>
void Difference::add_elements(std::span<const float> wanted, std::span<const T> got) {
  constexpr bool integers = std::is_integral_v<T>;
  const double scale = integers ? type_.scales->scale[0] : 1;
  const std::int64_t zero = integers ? type_.scales->zero_point[0] : 0;
  [[maybe_unused]] const IntegerRange ends = integers ? quantised_range(type_) : IntegerRange{};
  [[maybe_unused]] const double least = scale * (static_cast<double>(ends.lowest - zero) - 0.5);
  [[maybe_unused]] const double most = scale * (static_cast<double>(ends.highest - zero) + 0.5);
  const auto [smallest, greatest] = normal_range(type_.dtype);
  constexpr double mask = 16;  // times the range: nothing else is so far away, and no figure counts it
  [[maybe_unused]] const double span = most - least;
  for (std::size_t begin = 0, c = 0; begin < wanted.size(); begin += inner_, c = (c + 1) % channels_) {
    Sums sums;
    double largest = 0;
    for (std::size_t i = begin; i < begin + inner_; ++i) {
      const double real = static_cast<double>(wanted[i]);
      if (std::isnan(real)) ++undefined_;
      if (!std::isfinite(real)) continue;
      double value = 0;
      if constexpr (integers) {
        const std::int64_t q = got[i];
        value = scale * static_cast<double>(q - zero);
        if ((q == ends.lowest && real < -mask * span) || (q == ends.highest && real > mask * span)) continue;
        lowest_ = std::min(lowest_, q);
        highest_ = std::max(highest_, q);
        if ((q == ends.lowest && real < least) || (q == ends.highest && real > most)) ++clipped_;
      } else {
        value = static_cast<double>(got[i]);
        if (std::isnan(value)) value = std::numeric_limits<double>::infinity();  // as far off as can be
        if (std::abs(real) > greatest) ++clipped_;
        if (real != 0) ++nonzero_;
        if (real != 0 && std::abs(real) < smallest) ++denormal_;
      }
      ++count_;
      sums.signal += real * real;
      sums.noise += (value - real) * (value - real);
      sums.product += value * real;
      sums.got += value * value;
      largest = std::max(largest, std::abs(real));
    }
    for (Sums* to : {&all_, &by_channel_[c]}) {
      to->signal += sums.signal;
      to->noise += sums.noise;
      to->product += sums.product;
      to->got += sums.got;
    }
    largest_[c] = std::max(largest_[c], largest);
  }
}

double Difference::db() const {
  if (count_ == 0 && undefined_ > 0) return -std::numeric_limits<double>::infinity();
  return signal_to_noise_db(all_.signal, all_.noise);
}

double Difference::db_beside(const Difference& sum) const {
  const double of_sum = sum.count_ > 0 ? sum.all_.signal * count_ / sum.count_ : 0;
  return std::isfinite(db()) ? signal_to_noise_db(std::max(all_.signal, of_sum), all_.noise) : db();
}

TensorError Difference::error() const {
  const double lengths = std::sqrt(all_.signal * all_.got);
  TensorError error{db(), lengths > 0 && std::isfinite(lengths) ? all_.product / lengths : db() > 0 ? 1.0 : 0.0, {}};
  if (channels_ < 2) return error;
  for (std::size_t c = 0; c < channels_; ++c) {
    const Sums& sums = by_channel_[c];
    if (sums.noise == 0 || sums.signal == 0) continue;  // a channel of zeros has no signal to lose
    const double channel_db = signal_to_noise_db(sums.signal, sums.noise);
    if (!error.worst_channel || channel_db < error.worst_channel->db)
      error.worst_channel = ChannelError{channel_dim_, static_cast<std::int64_t>(c), channel_db};
  }
  return error;
}

std::optional<double> Difference::saturated() const {
  if (count_ == 0 || !(type_.quantised() || is_narrow_float(type_.dtype))) return std::nullopt;
  return clipped_ / count_;
}

std::optional<double> Difference::range_used() const {
  if (!type_.quantised() || count_ == 0) return std::nullopt;
  const IntegerRange ends = quantised_range(type_);
  return static_cast<double>(highest_ - lowest_) / static_cast<double>(ends.highest - ends.lowest);
}

double Difference::largest_of_all() const {
  return largest_.empty() ? 0 : *std::max_element(largest_.begin(), largest_.end());
}

}  // namespace tosaic
