// SPDX-License-Identifier: Apache-2.0
#include "ethosu/weights.h"

#include <fmt/format.h>
#include <algorithm>

#include "base/bytes.h"
#include "ethosu/conv_kernel.h"
#include "ethosu/weight_codec.h"

namespace tosaic::ethosu {
namespace {

struct CodedStream {
  std::int64_t base = 0, length = 0;
  std::span<const std::byte> bytes;
};

// The micro-block's output channels: how MACs are divided between depth and area.
Result<int> micro_depth(const Context& context) {
  if (!context.config.u85()) return context.config.macs == 32 ? 4 : 8;
  constexpr int areas[] = {1, 2, 4, 4, 8, 16};
  const std::uint64_t micro = context.registers.get<"ACC_FORMAT", "microblock">();
  if (micro > 5) return error("ethosu.reserved", fmt::format("micro-block number {}", micro));
  const int depth = context.config.macs / (8 * areas[micro]);
  if (depth < 4 * context.config.weight_streams() || depth > 128)
    return error("ethosu.micro-block",
                 fmt::format("micro-block number {} does not exist with {} MACs", micro, context.config.macs));
  return depth;
}

Result<std::vector<CodedStream>> coded_streams(const Context& context, int count, std::int64_t outputs) {
  const Registers& r = context.registers;
  const int region = static_cast<int>(r.get<"WEIGHT_REGION", "region">());
  std::vector<CodedStream> streams(static_cast<std::size_t>(count));
  for (int s = 0; s < count; ++s) {
    CodedStream& stream = streams[static_cast<std::size_t>(s)];
    if (!context.config.u85() && s >= outputs) continue;  // a core without a channel of its own
    switch (s) {
      case 0:
        stream.base = r.signed40<"WEIGHT_BASE">(),
        stream.length = static_cast<std::int64_t>(r.get<"WEIGHT_LENGTH", "length">());
        break;
      case 1:
        stream.base = r.signed40<"WEIGHT1_BASE">(),
        stream.length = static_cast<std::int64_t>(r.get<"WEIGHT1_LENGTH", "length">());
        break;
      case 2:
        stream.base = r.signed40<"WEIGHT2_BASE">(),
        stream.length = static_cast<std::int64_t>(r.get<"WEIGHT2_LENGTH", "length">());
        break;
      default:
        stream.base = r.signed40<"WEIGHT3_BASE">(),
        stream.length = static_cast<std::int64_t>(r.get<"WEIGHT3_LENGTH", "length">());
        break;
    }
    TOSAIC_TRY(stream.bytes, range(context.regions, region, stream.base, stream.length, false, "the weight stream"));
  }
  return streams;
}

// One physical stream of the fast format feeds all cores in turns of one micro-block step.
std::vector<std::vector<std::int16_t>> deal_out(const std::vector<std::int16_t>& all,
                                                const std::vector<std::size_t>& counts, std::size_t turn) {
  std::vector<std::vector<std::int16_t>> streams(counts.size());
  std::size_t next = 0;
  while (next < all.size())
    for (std::size_t s = 0; s < counts.size(); ++s) {
      const std::size_t take = std::min(turn, counts[s] - streams[s].size());
      streams[s].insert(streams[s].end(), all.begin() + static_cast<std::ptrdiff_t>(next),
                        all.begin() + static_cast<std::ptrdiff_t>(next + take));
      next += take;
    }
  return streams;
}

}  // namespace

void finish_weights(DecodedWeights& weights, bool depthwise) {
  const Weights& w = weights.dense;
  const std::int64_t per_output = w.taps() * w.inputs;
  for (std::int64_t o = 0; o < w.outputs; ++o) {
    std::int64_t sum = 0;
    for (std::int64_t k = 0; k < per_output; ++k) {
      const std::int64_t magnitude = std::abs(static_cast<std::int64_t>(w.of(o)[k]));
      sum += magnitude;
      weights.largest = std::max(weights.largest, magnitude);
    }
    weights.largest_sum = std::max(weights.largest_sum, sum);
  }
  weights.packed = depthwise ? pack_depthwise(w) : pack_dense(w);
}

Result<std::shared_ptr<const DecodedWeights>> load_weights(Context& context, bool depthwise, std::int64_t outputs,
                                                           std::int64_t inputs, const Kernel& kernel, int ifm_bits) {
  const Registers& r = context.registers;
  WeightOrder order;
  order.u85 = context.config.u85();
  order.depthwise = depthwise;
  order.part_kernel = kernel.part_kernel_first && !depthwise;
  order.macs = context.config.macs;
  order.ifm_bits = ifm_bits;
  order.ofm_block_depth = static_cast<std::int64_t>(r.get<"OFM_BLK_DEPTH_M1", "depth_m1">()) + 1;
  order.dilation_x = kernel.dilation_x, order.dilation_y = kernel.dilation_y;
  order.stride_x = kernel.stride_x, order.stride_y = kernel.stride_y;
  if (order.u85) {
    order.fast_format = r.get<"WEIGHT_FORMAT", "weight_format">() != 0;
    order.sparse = r.get<"WEIGHT_FORMAT", "weight_sparsity">() != 0;
    if (order.sparse && (order.fast_format || depthwise || ifm_bits > 16))
      return error("ethosu.undecidable", "2:4 sparse weights in the fast format or depthwise: not seen and checked");
    if (order.fast_format && depthwise) return error("ethosu.undecidable", "depthwise weights in the fast format");
  }
  TOSAIC_TRY(order.ofm_micro_depth, micro_depth(context));
  order.streams = context.config.weight_streams();

  const int region = static_cast<int>(r.get<"WEIGHT_REGION", "region">());
  TOSAIC_TRY(const std::vector<CodedStream> coded,
             coded_streams(context, order.fast_format ? 1 : order.streams, outputs));
  WeightCache::Key key{depthwise,
                       outputs,
                       inputs,
                       kernel.h,
                       kernel.w,
                       order.part_kernel,
                       ifm_bits,
                       order.ofm_block_depth,
                       order.ofm_micro_depth,
                       order.dilation_x,
                       order.dilation_y,
                       order.stride_x,
                       order.stride_y,
                       order.fast_format,
                       order.sparse,
                       region};
  std::size_t coded_bytes = 0;
  for (const CodedStream& stream : coded) {
    key.insert(key.end(), {stream.base, stream.length});
    // What the caller or an earlier command can change is known by its content.
    if (region != context.constant_region)
      key.push_back(static_cast<std::int64_t>(hash_of(stream.bytes.data(), stream.bytes.size())));
    coded_bytes += stream.bytes.size();
  }
  if (auto found = context.weights.find(key)) return found;

  auto weights = std::make_shared<DecodedWeights>();
  Weights& dense = weights->dense;
  dense.outputs = outputs, dense.kernel_h = kernel.h, dense.kernel_w = kernel.w, dense.inputs = inputs;
  // Eight zeros in a bit is the densest code there is: more weights than that, and the length lies.
  const std::size_t most = 64 * coded_bytes + 64;
  const double volume = static_cast<double>(outputs) * static_cast<double>(inputs) * static_cast<double>(dense.taps());
  if (volume > static_cast<double>(std::min<std::size_t>(most, most_elements)))
    return error("ethosu.weights",
                 fmt::format("{} bytes of encoded weights cannot hold {:.0f} weights", coded_bytes, volume));
  TOSAIC_CHECK(context.spend(static_cast<double>(most)));
  dense.values.assign(static_cast<std::size_t>(volume), 0);
  std::vector<std::size_t> counts;
  for (int s = 0; s < order.streams; ++s) {
    counts.push_back(count_weights(order, dense, s, most));
    // A core whose share is empty has no stream.
    if (counts.back() == 0 && !(outputs <= s && !order.u85))
      return error("ethosu.weights", fmt::format("{} bytes of encoded weights cannot hold {} x {} x {} x {}",
                                                 coded_bytes, outputs, kernel.h, kernel.w, inputs));
  }
  std::vector<std::vector<std::int16_t>> decoded(counts.size());
  if (order.fast_format) {
    std::size_t total = 0;
    for (const std::size_t count : counts) total += count;
    std::vector<std::int16_t> all;
    TOSAIC_CHECK(decode_fwd(coded[0].bytes, total, all));
    const std::size_t unit = order.part_kernel ? (ifm_bits == 16 ? 8 : 16)
                             : ifm_bits == 32 || (order.macs <= 256 && order.ofm_micro_depth == 16) ? 32
                                                                                                    : 64;
    const std::size_t round = order.part_kernel ? (ifm_bits == 16 ? 10 : 5) : 1;
    decoded = deal_out(all, counts, static_cast<std::size_t>(order.ofm_micro_depth) * unit * round / counts.size());
  } else {
    for (std::size_t s = 0; s < counts.size(); ++s)
      if (counts[s] > 0) { TOSAIC_CHECK(decode_mlw(coded[s].bytes, counts[s], decoded[s])); }
  }
  for (std::size_t s = 0; s < counts.size(); ++s) {
    const int to =
        mutated("order.u85_stream_groups") && order.u85 ? static_cast<int>(counts.size() - 1 - s) : static_cast<int>(s);
    if (counts[s] > 0) { TOSAIC_CHECK(arrange_weights(order, decoded[s], to, dense)); }
  }
  finish_weights(*weights, depthwise);
  context.weights.keep(std::move(key), weights);
  return std::shared_ptr<const DecodedWeights>(weights);
}

}  // namespace tosaic::ethosu
