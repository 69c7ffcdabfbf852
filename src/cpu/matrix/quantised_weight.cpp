// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/quantised_weight.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/system/mapped_files.h"
#include "ops/definitions/extension.h"
#include "simd/transpose.h"

namespace tosaic::cpu {
namespace {

// Of a weight between two times that its pages are given back: much less than it, much more than a system call.
constexpr std::int64_t bytes_of_task = 1 << 18;

bool are_bfloat16(std::span<const float> scales) {
  std::uint32_t low = 0;
  for (const float s : scales) low |= std::bit_cast<std::uint32_t>(s) & 0xffff;
  return low == 0;
}

// Eight values in the low and high halves of a word's bytes, or four in its bytes; plus 8 or 128.
void make_words(const std::uint32_t* values, int bits, std::int64_t count, std::uint32_t* words) {
  constexpr std::uint32_t low = 0x0f0f0f0f;
  if (bits == 8)
    for (std::int64_t i = 0; i < count; ++i) words[i] = values[i] ^ 0x80808080u;
  else
    for (std::int64_t i = 0; i < count; ++i)
      words[i] = ((values[2 * i] & low) | (values[2 * i + 1] & low) << 4) ^ 0x88888888u;
}

// What rows are, by where they lie; their scales are compared.
struct Identity {
  const std::byte* values;
  std::int64_t run, n, k, group;
  int bits;
  bool by_columns;
  bool operator==(const Identity&) const = default;
};
Identity identity_of(const QuantisedRows& rows, int bits) {
  return {rows.values.bytes.data(), rows.values.run, rows.n, rows.k, rows.group, bits, rows.by_columns};
}

}  // namespace

std::shared_ptr<QuantisedWeight> QuantisedWeight::shared(QuantisedRows rows, int bits) {
  static std::mutex mutex;
  static std::vector<std::pair<Identity, std::weak_ptr<QuantisedWeight>>> in_use;
  const std::lock_guard lock(mutex);
  std::erase_if(in_use, [](const auto& entry) { return entry.second.expired(); });
  Identity identity = identity_of(rows, bits);
  for (const auto& [other, weight] : in_use)
    if (other == identity)
      if (auto known = weight.lock(); known && known->rows_.scales == rows.scales) return known;
  auto made = std::make_shared<QuantisedWeight>(std::move(rows), bits);
  made->keeps_rows = true;  // and with them their memory, as long as it is known by its place
  in_use.emplace_back(identity, made);
  return made;
}

std::shared_ptr<QuantisedWeight> quantised_weight(Planning& planning, const Node& node) {
  namespace product = extension::scaled_product;
  namespace gather = extension::scaled_gather;
  const bool looks_up = node.op == extension::op::scaled_gather;
  const ValueId values = node.inputs[looks_up ? gather::values : product::values];
  std::shared_ptr<QuantisedWeight>& known = planning.quantised_weights[values];
  if (!known) {
    planning.packed_operands.emplace_back(values, node.inputs[looks_up ? gather::scales : product::scales]);
    QuantisedRows rows = plan::quantised_rows(planning.graph, node);
    const int bits = rows.group % 8 == 0 && rows.values.fits_four_bits() ? 4 : 8;
    known = planning.lasting_weights ? QuantisedWeight::shared(std::move(rows), bits)
                                     : std::make_shared<QuantisedWeight>(std::move(rows), bits);
  }
  if (looks_up && !known->keeps_rows) known->keeps_rows = true;
  return known;
}

QuantisedWeight::QuantisedWeight(QuantisedRows rows, int bits)
    : rows_(std::move(rows)),
      panels_{.n = rows_.n, .k = rows_.k, .group = rows_.group, .bits = bits, .lanes = quantised_gemm().lanes} {}

void QuantisedWeight::pack(ThreadPool& pool) const {
  std::call_once(packed_, [&] { pack_all(pool); });
}

void QuantisedWeight::pack_all(ThreadPool& pool) const {
  QuantisedPanels& b = panels_;
  const std::int64_t padded = b.count() * b.lanes, words_of_row = b.k / b.values_per_word();
  b.words = fresh_lines<std::uint32_t>(static_cast<std::size_t>(padded * words_of_row));
  const auto scales = static_cast<std::size_t>(padded * b.groups());
  if (are_bfloat16(rows_.scales.as<float>()))
    b.short_scales.resize(scales);
  else
    b.scales.resize(scales);
  b.row_sums.resize(static_cast<std::size_t>(padded));
  const std::int64_t of_panel = b.lanes * b.k, each = std::max<std::int64_t>(1, bytes_of_task / of_panel);
  const std::int64_t memory_of_thread = of_panel / 4 + b.lanes * words_of_row;
  const auto memory =
      std::make_unique_for_overwrite<std::uint32_t[]>(static_cast<std::size_t>(memory_of_thread * pool.threads()));
  pool.run((b.count() + each - 1) / each, [&](std::int64_t task, int thread) {
    const std::int64_t first = task * each, last = std::min(b.count(), first + each);
    for (std::int64_t p = first; p < last; ++p) pack_panel(p, memory.get() + thread * memory_of_thread);
    if (rows_.by_columns) return;  // others read all of it, too
    const std::int64_t rows = std::min(last * b.lanes, b.n) - first * b.lanes;
    const auto read = rows_.values.stored(first * of_panel, rows * b.k);
    release_pages(read.data(), read.size());
  });
  release_pages(rows_.values.bytes.data(), rows_.values.bytes.size());
  release_pages(rows_.scales.data(), rows_.scales.size());
  if (!keeps_rows) rows_ = {};
}

void QuantisedWeight::pack_panel(std::int64_t panel, std::uint32_t* memory) const {
  QuantisedPanels& b = panels_;
  const std::int64_t first = panel * b.lanes, rows = std::min<std::int64_t>(b.lanes, b.n - first),
                     words_of_row = b.k / b.values_per_word();
  auto* values = reinterpret_cast<std::int8_t*>(memory);
  std::uint32_t* words = memory + b.lanes * b.k / 4;
  rows_.read_values(first, rows, values);
  make_words(memory, b.bits, rows * words_of_row, words);
  std::uint32_t* to = b.words.get() + panel * b.lanes * words_of_row;
  if (rows < b.lanes) std::fill(to, to + b.lanes * words_of_row, 0);
  simd::transpose_words(words, words_of_row, to, b.lanes, rows, words_of_row);

  for (std::int64_t lane = 0; lane < rows; ++lane) {
    const std::span<const float> scales = rows_.scales_of(first + lane);
    double all = 0;
    for (std::int64_t g = 0; g < b.groups(); ++g) {
      const float scale = scales[static_cast<std::size_t>(g)];
      const std::size_t at = b.scale_at(panel, g) + static_cast<std::size_t>(lane);
      if (b.scales.empty())
        b.short_scales[at] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(scale) >> 16);
      else
        b.scales[at] = scale;
      std::int32_t sum = 0;
      for (const std::int8_t value : std::span(values + lane * b.k + g * b.group, static_cast<std::size_t>(b.group)))
        sum += value;
      all += static_cast<double>(sum) * static_cast<double>(scale);
    }
    b.row_sums[static_cast<std::size_t>(first + lane)] = static_cast<float>(all);
  }
}

void QuantisedWeight::read_row(std::int64_t n, float* to) const {
  std::array<std::int8_t, 256> part;
  const std::span<const float> scales = rows_.scales_of(n);
  for (std::int64_t g = 0; g < rows_.groups(); ++g)
    for (std::int64_t k = g * rows_.group, end = k + rows_.group, count = 0; k < end; k += count) {
      count = std::min<std::int64_t>(end - k, part.size());
      rows_.values.read(n * rows_.k + k, {part.data(), static_cast<std::size_t>(count)});
      for (std::int64_t i = 0; i < count; ++i)
        to[k + i] = static_cast<float>(part[static_cast<std::size_t>(i)]) * scales[static_cast<std::size_t>(g)];
    }
}

}  // namespace tosaic::cpu
