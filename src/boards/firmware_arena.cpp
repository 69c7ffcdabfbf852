// SPDX-License-Identifier: Apache-2.0
// How much memory a firmware takes until it has loaded a program: the program's own memory exactly, and what the
// runtime notes about it by the most that an entry takes on a 32-bit processor. test/bare holds it against the board.
#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "base/delegate_ids.h"
#include "boards/firmware.h"
#include "delegates/ethos_u/regions.h"
#include "formats/pte/pte_file.h"
#include "tosaic/ethosu.h"

namespace tosaic::boards {
namespace {

constexpr std::uint64_t whole = 1750, of_value = 608, of_tensor = 128, of_instruction = 200, of_operator = 100,
                        of_delegate = 2000, of_port = 340, of_memory = 96, of_order = 160, header_of_file = 64 + 32;

std::uint64_t padded(std::uint64_t bytes) { return (bytes + 63) / 64 * 64; }

std::uint64_t bytes_of(const pte::TensorValue& tensor) {
  std::uint64_t bytes = storage_size(tensor.dtype);
  for (const std::int32_t size : tensor.sizes) bytes *= static_cast<std::uint64_t>(std::max<std::int32_t>(size, 0));
  return bytes;
}

// What the NPU works in.
Result<NpuRegions> regions_of(const pte::Delegate& delegate, const std::map<std::string, Bytes>& data) {
  TOSAIC_TRY(const vela::Payload payload, vela::read(delegate.payload.joined()));
  TOSAIC_TRY(const Bytes commands, vela::resolve(payload.commands, "commands", &data));
  tosaic_ethosu_options options{};
  options.struct_bytes = sizeof options;
  options.threads = 1;
  tosaic_ethosu_error why{};
  tosaic_ethosu_stream* stream = nullptr;
  if (tosaic_ethosu_open(commands.data(), commands.size(), "", 0, &options, &stream, &why))
    return error(why.code, why.message);
  tosaic_ethosu_info info{};
  tosaic_ethosu_describe(stream, &info, 0, nullptr, nullptr);
  tosaic_ethosu_close(stream);
  return delegates::region_bytes(payload, info);
}

}  // namespace

Result<NpuRegions> npu_regions(const pte::Program& program) {
  NpuRegions most{};
  const std::map<std::string, Bytes> data = data_of(program);
  for (const pte::Delegate& delegate : program.plans.front().delegates) {
    TOSAIC_TRY(const NpuRegions regions, regions_of(delegate, data));
    for (std::size_t r = 0; r < most.size(); ++r) most[r] = std::max(most[r], regions[r]);
  }
  return most;
}

bool may_be_firmware(const pte::Program& program) {
  if (program.plans.size() != 1 || program.plans[0].delegates.empty()) return false;
  return std::ranges::all_of(program.plans[0].delegates,
                             [](const pte::Delegate& delegate) { return delegate.id == delegate_ids::ethos_u; });
}

Result<std::uint64_t> firmware_arena(const pte::Program& program) {
  const pte::Plan& plan = program.plans.front();
  const std::map<std::string, Bytes> data = data_of(program);
  std::uint64_t bytes = whole + of_value * plan.values.size() + of_instruction * plan.instructions.size() +
                        of_operator * plan.operators.size();
  for (const std::int64_t arena : plan.arena_sizes) bytes += padded(static_cast<std::uint64_t>(arena)) + of_memory;
  const auto tensor = [&](std::size_t i) { return std::get_if<pte::TensorValue>(&plan.values[i]); };
  for (std::size_t i = 0; i < plan.values.size(); ++i)
    if (const auto* t = tensor(i)) {
      bytes += of_tensor;
      if (!t->is_planned && t->constant.null()) bytes += padded(bytes_of(*t)) + of_memory;
      if (!t->dim_order.empty()) bytes += of_order;
    }
  for (const auto* ports : {&plan.inputs, &plan.outputs})
    for (const std::int32_t i : *ports)
      if (const auto* t = tensor(static_cast<std::size_t>(i))) bytes += of_port + header_of_file + padded(bytes_of(*t));
  for (const std::int32_t i : plan.outputs)  // also given in the order of its dimensions
    if (const auto* t = tensor(static_cast<std::size_t>(i)); t && !t->dim_order.empty())
      bytes += padded(bytes_of(*t)) + of_memory;
  for (const pte::Delegate& delegate : plan.delegates) {
    TOSAIC_TRY(const NpuRegions regions, regions_of(delegate, data));
    bytes += of_delegate;
    for (const std::uint64_t region : regions)
      if (region > 0) bytes += padded(region) + of_memory;
  }
  return padded(bytes);
}

}  // namespace tosaic::boards
