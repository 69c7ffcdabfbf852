// SPDX-License-Identifier: Apache-2.0
#include "normalise/fourier_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "ir/aten_operators.h"
#include "ops/lowering/calls.h"

namespace tosaic::pairs {
namespace {

constexpr std::array schemas{
    std::string_view("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"),
    std::string_view("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"),
    std::string_view("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"),
    std::string_view("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor"),
    std::string_view("fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"),
    std::string_view("fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"),
    std::string_view("fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"),
    std::string_view("fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor"),
    std::string_view("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"),
    std::string_view("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"),
    std::string_view("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"),
    std::string_view("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"),
    std::string_view("_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor"),
    std::string_view("_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"),
    std::string_view("_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor"),
};

// Pairs have their real and imaginary parts along a dim of their own behind all others.
int rank_of(Val x, Of of) { return x.rank() - (of == Of::pairs ? 1 : 0); }

// One dim, of `take` numbers (fewer or more than there are: cut, or followed by zeros), which become `give`.
Val along(Val x, Of& of, int dim, Of wanted, Matrix m) {
  const int last = rank_of(x, of) - 1;
  if (dim != last) x = calls::transpose(x, dim, last);
  Builder& b = x.builder();
  auto dims = x.shape().sizes();
  if (of == Of::pairs) {
    dims.pop_back();
    dims.back() *= 2;
    x = calls::view(x, Shape(dims));
  }
  const Val weight = of == Of::real ? from_real(b, m) : wanted == Of::pairs ? from_pairs(b, m) : to_real(b, m);
  x = b.aten(aten::op::linear, {x, weight});
  if (wanted == Of::pairs) {
    dims.back() = m.columns;
    dims.push_back(2);
    x = calls::view(x, Shape(dims));
  }
  of = wanted;
  return dim != last ? calls::transpose(x, dim, last) : x;
}

struct Transform {
  std::vector<int> dims;              // the last one is that which real numbers go into or come from
  std::vector<std::int64_t> lengths;  // of each
  bool inverse = false, half = false, to_real = false;
  double factor = 1;  // of the whole
};

Val transformed(Val x, Of of, const Transform& how) {
  const double sign = how.inverse ? 1 : -1;
  const auto step = [&](std::size_t i, Of wanted, bool half) {
    const std::int64_t length = how.lengths[i];
    const bool first = how.to_real ? i == 0 : i + 1 == how.dims.size();
    x = along(x, of, how.dims[i], wanted,
              {length, x.dim(how.dims[i]), half ? length / 2 + 1 : length, sign, first ? how.factor : 1.0});
  };
  if (how.to_real) {
    for (std::size_t i = 0; i + 1 < how.dims.size(); ++i) step(i, Of::pairs, false);
    step(how.dims.size() - 1, Of::real, false);
  } else {
    for (std::size_t i = how.dims.size(); i-- > 0;) step(i, Of::pairs, how.half && i + 1 == how.dims.size());
  }
  return x;
}

int dim_of(Builder& b, std::int64_t dim, int rank) {
  if (dim < -rank || dim >= rank) b.refuse("aten.fft.dim", fmt::format("dim {} of a tensor of {} dims", dim, rank));
  return static_cast<int>(dim < 0 ? dim + rank : dim);
}

// Which dims, and how long they are made: n and dim, or s and dim.
void read_dims(const Call& call, Val x, int rank, Transform& how) {
  Builder& b = call.builder();
  std::vector<std::int64_t> lengths, dims;
  if (call.schema().argument("n")) {
    if (call.has("n")) lengths = {call.integer("n")};
    dims = {call.integer("dim")};
  } else {
    if (call.has("s")) lengths = call.ints("s");
    if (call.has("dim")) {
      dims = call.ints("dim");
    } else {
      dims.resize(call.has("s") ? lengths.size() : static_cast<std::size_t>(rank));
      std::iota(dims.begin(), dims.end(), -static_cast<std::int64_t>(dims.size()));
    }
  }
  if (dims.empty() || (!lengths.empty() && lengths.size() != dims.size()))
    b.refuse("aten.fft.dim", fmt::format("{} lengths for {} dims", lengths.size(), dims.size()));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    how.dims.push_back(dim_of(b, dims[i], rank));
    const std::int64_t there = x.dim(how.dims.back());
    const std::int64_t whole = how.to_real && i + 1 == dims.size() ? 2 * (there - 1) : there;
    how.lengths.push_back(lengths.empty() || lengths[i] == -1 ? whole : lengths[i]);
  }
}

double elements(const Transform& how) {
  double n = 1;
  for (const std::int64_t length : how.lengths) n *= static_cast<double>(length);
  return n;
}

// "backward": nothing there, 1/n back; "forward": the other way round; "ortho": 1/sqrt(n) both ways.
double factor_of(const Call& call, const Transform& how) {
  const std::string norm = call.has("norm") ? call.text("norm") : "backward";
  if (norm == "ortho") return 1 / std::sqrt(elements(how));
  if (norm != "backward" && norm != "forward") call.builder().refuse("aten.fft.norm", fmt::format("norm '{}'", norm));
  return (norm == "forward") != how.inverse ? 1 / elements(how) : 1;
}

// aten._fft_*, what the others are made of: 0, 1 and 2 are factors of 1, 1/sqrt(n) and 1/n.
Transform plain(const Call& call, Val x, int rank) {
  Transform how;
  const std::string& name = call.schema().name;
  how.to_real = name == "_fft_c2r";
  how.inverse = how.to_real || (name == "_fft_c2c" && !call.flag("forward"));
  how.half = name == "_fft_r2c" && call.flag("onesided");
  for (const std::int64_t d : call.ints("dim")) {
    how.dims.push_back(dim_of(call.builder(), d, rank));
    how.lengths.push_back(x.dim(how.dims.back()));
  }
  if (how.dims.empty()) call.builder().refuse("aten.fft.dim", "a transform along no dim");
  if (how.to_real) how.lengths.back() = call.integer("last_dim_size");
  const std::int64_t mode = call.integer("normalization");
  how.factor = mode == 0 ? 1 : mode == 1 ? 1 / std::sqrt(elements(how)) : 1 / elements(how);
  return how;
}

}  // namespace

Val with_zeros(Val x) {
  Builder& b = x.builder();
  auto dims = x.shape().sizes();
  dims.push_back(1);
  const Val real = calls::view(x, Shape(dims));
  return calls::cat({real, b.filled(0, x.dtype(), Shape(dims))}, static_cast<int>(dims.size()) - 1);
}

std::string_view fourier_schema(std::string_view name) {
  for (const std::string_view schema : schemas)
    if (schema.substr(0, schema.find('(')) == name) return schema;
  return {};
}

Val fourier(Val x, Of of, const Call& call) {
  const std::string& name = call.schema().name;
  const int rank = rank_of(x, of);
  const bool takes_real = name == "_fft_r2c" || name.starts_with("fft_rfft");
  if (takes_real && of == Of::pairs) call.builder().refuse("aten.fft.complex", name + " of complex numbers");
  if (of == Of::real && (name == "_fft_c2r" || name.starts_with("fft_irfft"))) {
    x = with_zeros(x);
    of = Of::pairs;
  }
  if (name.starts_with('_')) return transformed(x, of, plain(call, x, rank));
  Transform how;
  how.to_real = name.starts_with("fft_irfft");
  how.inverse = name.starts_with("fft_i");
  how.half = takes_real;
  read_dims(call, x, rank, how);
  how.factor = factor_of(call, how);
  return transformed(x, of, how);
}

}  // namespace tosaic::pairs
