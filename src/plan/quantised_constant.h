// SPDX-License-Identifier: Apache-2.0
// Constants of quantised values of 4 or 8 bits, found by what makes floats of them: a CAST, or the arithmetic that
// takes two values out of a byte (tidy/pack_int4.cpp). What reads them takes the bytes of the file; nobody makes the
// floats.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "ir/graph.h"

namespace tosaic::plan {

struct QuantisedConstant {
  Bytes bytes;
  // 0: each byte is a value. Else a byte holds one of either half of a run of so many values.
  std::int64_t run = 0;

  std::int64_t size() const { return static_cast<std::int64_t>(bytes.size()) * (run ? 2 : 1); }
  // `to.size()` of them from `first` on.
  void read(std::int64_t first, std::span<std::int8_t> to) const;
  // Their bytes, which no other value shares where `first` begins a run and the count ends one.
  std::span<const std::byte> stored(std::int64_t first, std::int64_t count) const;
  // Are all of them in -8..7?
  bool fits_four_bits() const;
};
// What float `value` is, seen through views. `producer`: of the graph (producers()). nullopt: something else.
std::optional<QuantisedConstant> quantised_constant(const Graph& graph, std::span<const std::int32_t> producer,
                                                    ValueId value);

// Floats that are whole numbers of -128..127, as bytes; null: they are others.
Bytes as_bytes(std::span<const float> values);

}  // namespace tosaic::plan
