// SPDX-License-Identifier: Apache-2.0
#include "read/program_weights.h"

#include <fmt/format.h>
#include <atomic>

#include "base/parallel.h"
#include "read/program_types.h"
#include "read/read_error.h"
#include "simd/bulk_loops.h"

namespace tosaic {
namespace {

// Whether any element has its exponent all ones: NaN or an infinity. Weights are looked through once when they are
// read, so in blocks of a constant size, which become vectors, and on all cores.
template <class Word>
bool any_not_finite(const Bytes& content, Word exponent) {
  constexpr std::size_t block = 1024;
  const auto* words = reinterpret_cast<const Word*>(content.data());
  const std::size_t count = content.size() / sizeof(Word);
  std::atomic<bool> any{false};
  in_parallel(count / block, 256, [&](std::size_t first, std::size_t last) {
    for (std::size_t b = first; b < last && !any; ++b) {
      Word found = 0;
      for (std::size_t i = 0; i < block; ++i) found |= static_cast<Word>((words[b * block + i] & exponent) == exponent);
      if (found) any = true;
    }
  });
  for (std::size_t i = count / block * block; i < count; ++i)
    if ((words[i] & exponent) == exponent) any = true;
  return any;
}

bool any_float_not_finite(std::span<const float> x) {
  std::atomic<bool> any{false};
  in_parallel(x.size(), 1 << 18, [&](std::size_t first, std::size_t last) {
    if (!simd::bulk_loops().extremes(x.data() + first, last - first).all_finite) any = true;
  });
  return any;
}

bool has_not_finite(const Tensor& tensor) {
  switch (tensor.type.dtype) {
    case DType::f16: return any_not_finite<std::uint16_t>(tensor.data, 0x7c00);
    case DType::bf16: return any_not_finite<std::uint16_t>(tensor.data, 0x7f80);
    case DType::f32: return any_float_not_finite(tensor.data.as<float>());
    case DType::f64: return any_not_finite<std::uint64_t>(tensor.data, 0x7ff0000000000000);
    default: return false;
  }
}

// Complex numbers as PyTorch stores them: the real part, and the imaginary one after it.
StoredTensor pairs_of(StoredTensor complex, const std::string& what) {
  const auto doubled = [&](std::int64_t& n) {
    if (__builtin_mul_overflow(n, std::int64_t{2}, &n))
      fail("pt2.bad-shape", fmt::format("{} lies beyond what memory holds", what));
  };
  for (std::int64_t& stride : complex.strides) doubled(stride);
  doubled(complex.offset);
  complex.sizes.push_back(2);
  complex.strides.push_back(1);
  check_sizes(complex.sizes, what);
  return complex;
}

}  // namespace

void ProgramWeights::add_config(const std::string& record, const std::string& folder) {
  const zip::Entry* entry = archive_.find(record);
  if (!entry) return;  // a program without weights may lack the record; a weight that is asked for is reported then
  const Bytes text = value_or_fail(archive_.read(*entry));
  documents_.push_back(std::make_unique<JsonDocument>(text.text(), record));
  for (const auto& [name, meta] : documents_.back()->root().at("config").members())
    payloads_.emplace(name, Payload{meta, folder});
}

void ProgramWeights::add_pickle(const std::string& record) {
  const zip::Entry* entry = archive_.find(record);
  if (!entry) return;
  pickles_.emplace_back(record, value_or_fail(TorchSave::open(value_or_fail(archive_.read(*entry)), record)));
}

void ProgramWeights::add_tensor(const std::string& name, StoredTensor tensor) {
  tensors_.emplace(name, std::move(tensor));
}

StoredTensor ProgramWeights::find(const std::string& name, const std::string& what) {
  if (auto held = tensors_.find(name); held != tensors_.end()) return held->second;
  for (const auto& [record, saved] : pickles_)
    if (auto member = saved.member(saved.pickle().root, name)) {
      if (auto tensor = saved.tensor(*member)) return *std::move(tensor);
      fail("pt2.pickled-weight", fmt::format("{} is not a plain tensor in {}", what, record));
    }
  auto found = payloads_.find(name);
  if (found == payloads_.end())
    fail(error("pt2.missing-weight", fmt::format("{} is not in the archive", what))
             .note(fmt::format("the archive lists {} weights and constants", payloads_.size()))
             .hint("the file is incomplete: save the program again with torch.export.save"));
  const auto& [meta, folder] = found->second;
  if (auto pickled = meta.find("use_pickle"); pickled && pickled->flag())
    fail(
        error("pt2.pickled-weight",
              fmt::format("{} is an instance of a tensor subclass, saved as a Python object", what))
            .hint("export a model with plain tensors: for torchao weights, unwrap the subclasses or quantise by PT2E"));
  const std::string record = folder + std::string(meta.at("path_name").text());
  const zip::Entry* entry = archive_.find(record);
  if (!entry)
    fail(error("pt2.missing-weight", fmt::format("the archive lacks record '{}', which holds {}", record, what))
             .hint("the file is incomplete: save the program again with torch.export.save"));
  const Json layout = meta.at("tensor_meta");
  const bool complex = ProgramTypes::is_complex(layout);
  StoredTensor tensor{
      value_or_fail(archive_.read(*entry)), complex ? DType::f32 : ProgramTypes::dtype(layout.at("dtype"), what),
      ProgramTypes::plain_integers(layout.at("sizes"), what), ProgramTypes::plain_integers(layout.at("strides"), what),
      ProgramTypes::plain_integer(layout.at("storage_offset"), what)};
  check_sizes(tensor.sizes, what);
  if (complex) tensor = pairs_of(std::move(tensor), what);
  if (tensor.storage.empty() && Shape(tensor.sizes).elements() > 0)
    fail(error("pt2.missing-weight", fmt::format("{} has a shape, but no data", what))
             .hint("the program was exported with fake tensors: export a model with real weights"));
  return tensor;
}

Tensor ProgramWeights::load(const std::string& name, std::string_view kind) {
  const std::string what = fmt::format("{} '{}'", kind, name);
  StoredTensor stored = find(name, what);
  Tensor tensor{TensorType{stored.dtype, Shape(stored.sizes), std::nullopt}, {}};
  auto [first, last] = copies_.equal_range(stored.storage.data());
  for (auto it = first; it != last; ++it) {
    const StoredTensor& s = it->second.source;
    if (s.dtype == stored.dtype && s.sizes == stored.sizes && s.strides == stored.strides && s.offset == stored.offset)
      tensor.data = it->second.content;
  }
  if (tensor.data.null()) {
    tensor.data = dense(stored, what);
    warn_unless_finite(tensor, what);
    const std::byte* key = stored.storage.data();
    copies_.emplace(key, Copy{std::move(stored), tensor.data});
  }
  return tensor;
}

void ProgramWeights::warn_unless_finite(const Tensor& tensor, const std::string& what) {
  if (!has_not_finite(tensor)) return;
  const auto count = static_cast<std::size_t>(tensor.type.shape.elements());
  std::size_t nans = 0, infinities = 0, at = count;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = element_as_double(tensor.type.dtype, tensor.data.data(), i);
    if (value == value && value - value == 0) continue;
    at = std::min(at, i);
    ++(value == value ? infinities : nans);
  }
  sink_(warning("pt2.not-finite",
                fmt::format("{} holds {} NaN and {} infinite of {} elements", what, nans, infinities, count))
            .note(fmt::format("the first is element {}", at))
            .hint("results that depend on them will be NaN or infinite; was the training stable?"));
}

}  // namespace tosaic
