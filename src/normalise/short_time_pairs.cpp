// SPDX-License-Identifier: Apache-2.0
// Short-time Fourier transforms: frames that overlap, under a window, each transformed. That is a convolution whose
// weights are the transform's matrix times the window; its inverse a product, whose frames are added where they
// overlap.
#include <array>
#include <cmath>

#include "ir/aten_operators.h"
#include "normalise/fourier_pairs.h"
#include "ops/lowering/calls.h"

namespace tosaic::pairs {
namespace {

constexpr std::array schemas{
    std::string_view("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
                     "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
                     "align_to_window=None) -> Tensor"),
    std::string_view("stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? "
                     "window=None, bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? "
                     "onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor"),
    std::string_view("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
                     "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool "
                     "return_complex=False) -> Tensor"),
};

constexpr std::int64_t longest_frame = std::int64_t{1} << 20;
constexpr std::int64_t most_chunks = 64;  // that a frame is cut into

struct Frames {
  std::int64_t length, hop;
  std::optional<Val> window;  // [length]; none: ones
};

std::int64_t given(const Call& call, std::string_view name, std::int64_t otherwise) {
  return call.has(name) ? call.integer(name) : otherwise;
}
bool said(const Call& call, std::string_view name, bool otherwise) {
  return call.has(name) ? call.flag(name) : otherwise;
}

// A window shorter than the frame stands in its middle, zeros around it.
Frames frames_of(const Call& call) {
  Builder& b = call.builder();
  Frames f{call.integer("n_fft"), 0, call.optional_tensor("window")};
  f.hop = given(call, "hop_length", f.length / 4);
  const std::int64_t width = given(call, "win_length", f.length);
  if (f.length <= 0 || f.length > longest_frame || f.hop <= 0 || width <= 0 || width > f.length)
    b.refuse("aten.stft.frames",
             fmt::format("frames of {} samples under a window of {}, {} apart", f.length, width, f.hop));
  if (f.window && (f.window->rank() != 1 || f.window->dim(0) != width || f.window->dtype() != DType::f32))
    b.refuse("aten.stft.window", fmt::format("a window of type {}", to_string(f.window->type())));
  if (width == f.length) return f;
  if (!f.window) f.window = b.filled(1, DType::f32, Shape{width});
  const std::int64_t left = (f.length - width) / 2;
  f.window = b.aten(aten::op::constant_pad_nd, {*f.window},
                    {{"pad", std::vector<std::int64_t>{left, f.length - width - left}}, {"value", 0.0}});
  return f;
}

Val forward(Val x, const Call& call) {
  Builder& b = call.builder();
  const Frames f = frames_of(call);
  if (x.rank() != 1 && x.rank() != 2) b.refuse("aten.stft.shape", "an input of shape " + to_string(x.shape()));
  if (said(call, "align_to_window", false)) b.refuse("aten.stft.align_to_window", "align_to_window");
  const bool batched = x.rank() == 2;
  x = calls::view(x, {batched ? x.dim(0) : 1, 1, x.dim(-1)});
  if (call.overload() == "center" && call.flag("center"))
    x = b.aten(aten::op::pad, {x},
               {{"pad", std::vector<std::int64_t>{f.length / 2, f.length / 2}}, {"mode", call.text("pad_mode")}});
  if (x.dim(2) < f.length)
    b.refuse("aten.stft.shape", fmt::format("frames of {} samples out of {}", f.length, x.dim(2)));
  const std::int64_t bins = said(call, "onesided", true) ? f.length / 2 + 1 : f.length;
  const double factor = call.flag("normalized") ? 1 / std::sqrt(static_cast<double>(f.length)) : 1;
  Val weight = calls::view(from_real(b, {f.length, f.length, bins, -1, factor}), {2 * bins, 1, f.length});
  if (f.window) weight = calls::mul(weight, calls::view(*f.window, {1, 1, f.length}));
  Val y = b.aten(aten::op::conv1d, {x, weight, std::nullopt}, {{"stride", std::vector<std::int64_t>{f.hop}}});
  y = calls::transpose(calls::view(y, {y.dim(0), bins, 2, y.dim(2)}), 2, 3);
  return batched ? y : calls::view(y, {bins, y.dim(2), 2});
}

// [batch, count, length] to [batch, all]: each frame begins `hop` behind the one before. Frames are cut into parts of
// `hop`; all the first ones lie next to each other, the second ones begin one piece later, and so on.
Val overlapped(Val frames, std::int64_t hop) {
  Builder& b = frames.builder();
  const auto padded = [&](Val x, std::vector<std::int64_t> pad) {
    return b.aten(aten::op::constant_pad_nd, {x}, {{"pad", std::move(pad)}, {"value", 0.0}});
  };
  const std::int64_t batch = frames.dim(0), count = frames.dim(1), length = frames.dim(2);
  const std::int64_t chunks = (length + hop - 1) / hop;
  if (chunks > most_chunks)
    b.refuse("aten.istft.overlap", fmt::format("frames of {} samples that begin {} apart", length, hop));
  if (chunks * hop != length) frames = padded(frames, {0, chunks * hop - length});
  std::optional<Val> sum;
  for (std::int64_t p = 0; p < chunks; ++p) {
    Val chunk = calls::slice(frames, 2, p * hop, hop);
    if (chunks > 1) chunk = padded(chunk, {0, 0, p, chunks - 1 - p});
    sum = sum ? calls::add(*sum, chunk) : chunk;
  }
  return calls::slice(calls::view(*sum, {batch, (count + chunks - 1) * hop}), 1, 0, (count - 1) * hop + length);
}

// Overlapping windows add up to a curve by which the sum of frames is divided.
Val backward(Val x, const Call& call) {
  Builder& b = call.builder();
  const Frames f = frames_of(call);
  if (x.rank() != 3 && x.rank() != 4) b.refuse("aten.istft.shape", "pairs of shape " + to_string(x.shape()));
  if (call.flag("return_complex")) b.refuse("aten.istft.return_complex", "return_complex");
  const bool batched = x.rank() == 4;
  const std::int64_t batch = batched ? x.dim(0) : 1, bins = x.dim(-3), count = x.dim(-2);
  const bool half = said(call, "onesided", bins != f.length);
  if (!half) b.refuse("aten.istft.onesided", "both sides of a spectrum");
  if (bins != f.length / 2 + 1)
    b.refuse("aten.istft.shape", fmt::format("{} bins of frames of {} samples", bins, f.length));
  const double n = static_cast<double>(f.length), factor = call.flag("normalized") ? 1 / std::sqrt(n) : 1 / n;
  x = calls::view(calls::transpose(calls::view(x, {batch, bins, count, 2}), 1, 2), {batch, count, 2 * bins});
  const Val window = f.window ? *f.window : b.filled(1, DType::f32, Shape{f.length});
  Val weight = to_real(b, {f.length, bins, f.length, 1, factor});
  weight = calls::mul(weight, calls::view(window, {f.length, 1}));
  Val y = overlapped(b.aten(aten::op::linear, {x, weight, std::nullopt}), f.hop);
  const Val squares = calls::view(calls::mul(window, window), {1, 1, f.length});
  const Val all = b.aten(aten::op::expand, {squares}, {{"size", std::vector<std::int64_t>{1, count, f.length}}});
  const Val curve = calls::reciprocal(overlapped(all, f.hop));
  const std::int64_t whole = y.dim(1), start = call.flag("center") ? f.length / 2 : 0;
  const std::int64_t wanted = call.has("length") ? call.integer("length") : whole - 2 * start;
  const std::int64_t size = std::min(wanted, whole - start);
  if (size <= 0) b.refuse("aten.istft.shape", fmt::format("{} samples", size));
  y = calls::slice(y, 1, start, size);
  y = calls::mul(y, calls::slice(curve, 1, start, size));
  if (size < wanted)
    y = b.aten(aten::op::constant_pad_nd, {y}, {{"pad", std::vector<std::int64_t>{0, wanted - size}}, {"value", 0.0}});
  return batched ? y : calls::view(y, {wanted});
}

}  // namespace

std::string_view short_time_schema(std::string_view name) {
  for (const std::string_view schema : schemas)
    if (schema.substr(0, schema.find('(')) == name) return schema;
  return {};
}

Val short_time(Val x, Of of, const Call& call) {
  const bool inverse = call.schema().name == "istft";
  if (inverse != (of == Of::pairs))
    call.builder().refuse("aten.stft.complex",
                          call.schema().name + (inverse ? " of real numbers" : " of complex numbers"));
  return inverse ? backward(x, call) : forward(x, call);
}

}  // namespace tosaic::pairs
