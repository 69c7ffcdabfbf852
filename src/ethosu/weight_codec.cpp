// SPDX-License-Identifier: Apache-2.0
#include "ethosu/weight_codec.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ethosu/mutate.h"

namespace tosaic::ethosu {
namespace {

Diagnostic bad(std::size_t byte, std::string why) {
  return error("ethosu.weights", fmt::format("weight stream, byte {}: {}", byte, why));
}

// Bits, the lowest of each byte first. Past the end it gives zeros and remembers.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint32_t take(int count) {
    if (available_ < count) refill();
    const auto value = static_cast<std::uint32_t>(held_ & ((std::uint64_t{1} << count) - 1));
    held_ >>= count;
    available_ -= count;
    return value;
  }
  void align() { take(available_ & 7); }
  std::size_t byte() const { return next_ - static_cast<std::size_t>(available_ / 8); }
  bool past_end() const { return byte() > bytes_.size(); }
  bool at_end() const { return byte() >= bytes_.size(); }

 private:
  void refill() {
    while (available_ <= 48) {
      const std::uint64_t next = next_ < bytes_.size() ? std::to_integer<std::uint64_t>(bytes_[next_]) : 0;
      held_ |= next << available_;
      available_ += 8;
      ++next_;
    }
  }
  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  std::uint64_t held_ = 0;
  int available_ = 0;
};

constexpr int no_zero_runs = 6, end_of_stream = 7, uncompressed = 7;
constexpr int chunk_symbols = 12;

// Sign in the lowest bit, magnitude above.
std::int16_t unfold(std::uint32_t folded) {
  const auto magnitude = static_cast<std::int16_t>(folded >> 1);
  return (folded & 1) ? static_cast<std::int16_t>(-magnitude) : magnitude;
}

struct Palette {
  std::uint32_t direct_offset = 0;
  int size = 0;
  int entry_bits = 2;
  int index_bits = 2;  // when uncompressed
  std::array<std::int16_t, 32> entries{};

  void read(BitReader& in) {
    direct_offset = in.take(5);
    size = static_cast<int>(in.take(5));
    if (size > 0) ++size;
    entry_bits = static_cast<int>(in.take(3)) + 2;
    for (int i = 0; i < size; ++i) entries[static_cast<std::size_t>(i)] = unfold(in.take(entry_bits));
    index_bits = size > 0 ? std::bit_width(static_cast<unsigned>(size - 1)) : entry_bits;
  }
  std::int16_t value(std::uint32_t index) const {
    if (index < static_cast<std::uint32_t>(size)) return entries[index];
    return unfold(index - static_cast<std::uint32_t>(size) + direct_offset);
  }
};

// One chunk's quotients: how often the unary parts said "one more". Values may continue into the next chunk.
struct Chunk {
  std::array<std::uint32_t, chunk_symbols> quotient{};
  int symbols = 0;
};

struct Slice {
  std::vector<std::uint32_t> weights, zero_runs;
};

// The chunks of one slice. Unary parts run one chunk ahead of the remainders.
bool read_slice(BitReader& in, const Palette& palette, int zero_divisor, int weight_divisor, bool truncated,
                std::size_t weight_count, std::size_t run_count, Slice& slice) {
  const bool with_runs = zero_divisor != no_zero_runs;
  const bool plain = weight_divisor == uncompressed;
  const int remainder_bits = plain ? palette.index_bits : weight_divisor;
  const int plain_symbols = palette.index_bits > 5 ? 8 : chunk_symbols;
  const int run_symbols = zero_divisor < 3 ? 12 : 8;
  slice.weights.clear();
  slice.zero_runs.clear();
  Chunk weights, runs, weights_before, runs_before;
  std::uint32_t weight_carry = 0, run_carry = 0;
  std::size_t weights_begun = 0, runs_begun = 0;
  bool weights_pending = false, runs_pending = false;
  do {
    const auto balance =
        with_runs ? static_cast<std::int64_t>(weights_begun) - static_cast<std::int64_t>(runs_begun) : 0;
    const bool take_weights = (balance < 8 || !with_runs) && weights_begun < weight_count;
    const bool take_runs = with_runs && balance >= 0 && runs_begun < run_count;
    weights_before = weights;
    runs_before = runs;
    std::uint32_t first = take_weights && !plain ? in.take(12) : 0;
    const std::uint32_t zeros = take_runs ? in.take(run_symbols) : 0;
    if (take_weights) {
      weights.symbols = 0;
      if (plain) {
        const std::size_t left = weight_count - weights_begun;
        weights.symbols = static_cast<int>(std::min<std::size_t>(left, static_cast<std::size_t>(plain_symbols)));
        weights.quotient.fill(0);
      } else {
        const int ones = std::popcount(first);
        std::uint32_t second = in.take(ones);
        for (int i = 0; i < chunk_symbols; ++i, first >>= 1) {
          bool ends = true;
          if (first & 1) {
            ++weight_carry;
            const bool more = second & 1;
            second >>= 1;
            weight_carry += more;
            ends = !more || truncated;
          }
          if (!ends) continue;
          weights.quotient[static_cast<std::size_t>(weights.symbols++)] = weight_carry;
          weight_carry = 0;
        }
      }
      weights_begun += static_cast<std::size_t>(weights.symbols);
    }
    if (take_runs) {
      runs.symbols = 0;
      for (int i = 0; i < run_symbols; ++i) {
        if (zeros >> i & 1) {
          ++run_carry;
          continue;
        }
        runs.quotient[static_cast<std::size_t>(runs.symbols++)] = run_carry;
        run_carry = 0;
      }
      runs_begun += static_cast<std::size_t>(runs.symbols);
    }
    if (weights_pending)
      for (int i = 0; i < weights_before.symbols && slice.weights.size() < weight_count; ++i)
        slice.weights.push_back((weights_before.quotient[static_cast<std::size_t>(i)] << (plain ? 0 : weight_divisor)) +
                                in.take(remainder_bits));
    if (runs_pending)
      for (int i = 0; i < runs_before.symbols && slice.zero_runs.size() < run_count; ++i)
        slice.zero_runs.push_back((runs_before.quotient[static_cast<std::size_t>(i)] << zero_divisor) +
                                  in.take(zero_divisor));
    weights_pending = take_weights;
    runs_pending = take_runs;
    if (in.past_end()) return false;
  } while (weights_pending || runs_pending);
  return slice.weights.size() == weight_count && slice.zero_runs.size() == run_count;
}

}  // namespace

Status decode_mlw(std::span<const std::byte> coded, std::size_t count, std::vector<std::int16_t>& out) {
  BitReader in(coded);
  Palette palette;
  Slice slice;
  bool have_palette = false;
  const std::size_t end = out.size() + count;
  for (;;) {
    const int zero_divisor = static_cast<int>(in.take(3));
    if (zero_divisor == end_of_stream) {
      in.align();
      if (in.past_end()) return bad(coded.size(), "it ends inside a code");
      if (out.size() >= end) return {};
      have_palette = false;
      if (in.at_end()) return bad(in.byte(), fmt::format("{} weights are missing", end - out.size()));
      continue;
    }
    if (out.size() >= end) return bad(in.byte(), "more weights than the operation has");
    if (zero_divisor > no_zero_runs || (zero_divisor > 3 && zero_divisor != no_zero_runs))
      return bad(in.byte(), fmt::format("zero divisor {}", zero_divisor));
    const std::size_t length = in.take(15) + 1;
    const int weight_divisor = static_cast<int>(in.take(3));
    if (weight_divisor == 6) return bad(in.byte(), "weight divisor 6");
    const bool truncated = in.take(1);
    const bool new_palette = in.take(1);
    if (new_palette)
      palette.read(in);
    else if (!have_palette)
      return bad(in.byte(), "the first slice brings no palette");
    have_palette = true;
    const bool with_runs = zero_divisor != no_zero_runs;
    const std::size_t runs = with_runs ? length + (new_palette ? 1 : 0) : 0;
    if (!read_slice(in, palette, zero_divisor, weight_divisor, truncated, length, runs, slice))
      return bad(std::min(in.byte(), coded.size()), "it ends inside a slice");
    std::size_t run = 0;
    const auto append_run = [&] {
      const std::size_t zeros = slice.zero_runs[run++];
      if (zeros > end - out.size()) return false;
      out.resize(out.size() + zeros, 0);
      return true;
    };
    if (with_runs && new_palette && !append_run()) return bad(in.byte(), "more weights than the operation has");
    for (const std::uint32_t index : slice.weights) {
      if (out.size() >= end) return bad(in.byte(), "more weights than the operation has");
      if (index >= 1024) return bad(in.byte(), fmt::format("weight index {}", index));
      out.push_back(palette.value(index));
      if (with_runs && !append_run()) return bad(in.byte(), "more weights than the operation has");
    }
  }
}

Status decode_fwd(std::span<const std::byte> coded, std::size_t count, std::vector<std::int16_t>& out) {
  constexpr std::size_t header_bytes = 32;
  if (coded.size() < header_bytes) return bad(coded.size(), "it ends inside the header");
  BitReader header(coded.first(header_bytes));
  const bool raw = header.take(1), small = header.take(1);
  header.take(30), header.take(32), header.take(32), header.take(8);
  const int adjust = static_cast<std::int8_t>(header.take(8));
  std::array<std::int16_t, 16> entries{};
  for (auto& entry : entries) entry = unfold(header.take(9));
  const int bits = raw ? 8 : small ? 2 : 4;
  if (count > (coded.size() - header_bytes) * 8 / static_cast<std::size_t>(bits))
    return bad(coded.size(), fmt::format("{} weights of {} bits do not fit into {} bytes", count, bits, coded.size()));
  BitReader body(coded.subspan(header_bytes));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t code = body.take(bits);
    if (raw)
      out.push_back(
          static_cast<std::int16_t>(static_cast<std::int8_t>(code) + (mutated("fwd.adjust") ? -adjust : adjust)));
    else
      out.push_back(entries[mutated("fwd.table_order") ? code ^ 1 : code]);
  }
  return {};
}

}  // namespace tosaic::ethosu
