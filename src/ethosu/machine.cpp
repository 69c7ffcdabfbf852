// SPDX-License-Identifier: Apache-2.0
#include "ethosu/machine.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "ethosu/operations.h"

namespace tosaic::ethosu {
namespace {

constexpr std::uint16_t op_stop = 0, op_irq = 1, op_conv = 2, op_depthwise = 3, op_pool = 5, op_elementwise = 6,
                        op_resize = 7, op_dma_start = 0x10, op_dma_wait = 0x11, op_kernel_wait = 0x12,
                        op_pmu_mask = 0x13, op_branch = 0x100;
constexpr std::size_t lut_bytes_u85 = 2048;
constexpr double work_per_command = 20;
constexpr double work_per_branch = 1e8;  // no loop of an honest stream turns a hundred thousand times

// The error with the offset in the stream and the operation before it.
Diagnostic in_command(Diagnostic why, const Command& command) {
  why.message = fmt::format("command stream, byte {:#x}: {}: {}", command.byte, command.row->name, why.message);
  return why;
}

// Of the elements, row by row, as they are stored: the same for bricks and for plain maps.
std::uint64_t checksum(const FeatureMap& map) {
  const Shape3& shape = map.shape();
  const std::int64_t size = map.layout().type.bytes;
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.w * shape.c));
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size));
  std::uint64_t sum = 0;
  for (std::int64_t y = 0; y < shape.h; ++y) {
    map.read_row(y, 0, shape.w, 0, shape.c, values.data());
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(bytes.data() + i * static_cast<std::size_t>(size), &values[i], static_cast<std::size_t>(size));
    sum = hash_of(bytes.data(), bytes.size(), sum);
  }
  return sum;
}

void note_result(Context& context, const OutputStage& out) {
  context.result_flag = Context::Flag::unknown;
  if (!out.stores() || out.shape().elements() != 1) return;
  std::int64_t value = 0;
  out.map().read_row(0, 0, 1, 0, 1, &value);
  context.result_flag = (value != 0) != mutated("branch.condition") ? Context::Flag::on : Context::Flag::off;
}

}  // namespace

Result<std::vector<Command>> decode_commands(const Stream& stream) {
  const bool u85 = stream.config.u85();
  std::vector<Command> commands;
  for (std::size_t i = 0; i < stream.words.size();) {
    const std::size_t byte = stream.first_byte + 4 * i;
    const std::uint32_t word = stream.words[i];
    const std::uint32_t control = word >> 14 & 3;
    const auto opcode = static_cast<std::uint16_t>(word & 0x3ff);
    const auto bad = [&](std::string why) {
      return error("ethosu.command", fmt::format("command stream, byte {:#x}: {} (word {:#010x})", byte, why, word));
    };
    if (control > 1 || (word >> 10 & 15)) return bad("not a command");
    const Width width = control ? Width::two_words : Width::one_word;
    const Row* row = find_row(u85, width, opcode);
    if (!row) return bad(fmt::format("{} has no command {}:{:#05x}", name_of(stream.config.product), control, opcode));
    std::uint64_t value = word >> 16;
    if (width == Width::two_words) {
      if (i + 1 >= stream.words.size()) return bad(fmt::format("{} is cut short", row->name));
      value = value << 32 | stream.words[i + 1];
    }
    commands.push_back({byte, row, value});
    i += width == Width::two_words ? 2 : 1;
  }
  return commands;
}

Machine::Machine(Stream stream, Bytes constants, const Options& options)
    : stream_(std::move(stream)),
      constants_(std::move(constants)),
      options_(options),
      pool_(std::clamp(options.threads, 1, 64)),
      scratch_(static_cast<std::size_t>(pool_.threads())) {}

Result<std::unique_ptr<Machine>> Machine::open(const Bytes& container, const Bytes& constants, const Options& options) {
  TOSAIC_TRY(Stream stream, parse_container(container));
  return open(std::move(stream), constants, options);
}

Result<std::unique_ptr<Machine>> Machine::open(Stream stream, const Bytes& constants, const Options& options) {
  std::unique_ptr<Machine> machine(new Machine(std::move(stream), constants, options));
  TOSAIC_TRY(machine->commands_, decode_commands(machine->stream_));
  TOSAIC_CHECK(machine->measure());
  return machine;
}

Status Machine::measure() {
  Registers registers(config().u85());
  for (const Command& command : commands_) {
    if (!is_operation(*command.row)) {
      registers.write(*command.row, command.value);
      continue;
    }
    if (command.row->opcode == op_stop && command.row->width == Width::one_word) return {};
    measure_operation(config(), registers, command, requirements_);
    requirements_.operations += command.row->opcode >= op_conv && command.row->opcode <= op_dma_start;
  }
  return error("ethosu.no-stop", "the command stream has no OP_STOP");
}

Status Machine::run(const Regions& given, const Trace& trace, const Reached& reached) {
  Context context{config(),      Registers(config().u85()), given, 0, {}, {}, {}, {}, false, weights_, pool_, scratch_,
                  options_.slow, options_.most_work};
  if (!given[0].base) {
    // Never written: `writable` stays false.
    context.regions[0] = {const_cast<std::byte*>(constants_.data()), constants_.size(), false};
  } else {
    context.constant_region = -1;  // the caller's: may change between runs
  }
  context.internal.assign(
      config().u85() ? lut_bytes_u85 : std::max<std::size_t>(2048, static_cast<std::size_t>(config().shram_kb) * 1024),
      std::byte{0});
  for (std::size_t next = 0; next < commands_.size();) {
    const Command& command = commands_[next++];
    if (reached) reached(command, context.registers);
    if (auto status = context.spend(work_per_command); !status.ok()) return in_command(status.error(), command);
    if (command.row->opcode == op_branch && command.row->width == Width::two_words) {
      auto target = branch(context, command, next);
      if (!target.ok()) return in_command(target.error(), command);
      next = *target;
      continue;
    }
    if (!is_operation(*command.row)) {
      context.registers.write(*command.row, command.value);
      continue;
    }
    if (command.row->opcode == op_stop && command.row->width == Width::one_word) return {};
    context.registers.forget_missing();
    auto status = execute(context, command, trace);
    if (const Row* missing = context.registers.missing())
      return in_command(
          error("ethosu.reset-value",
                fmt::format("it depends on {}, which no command wrote; its reset value is not known", missing->name)),
          command);
    if (!status.ok()) return in_command(status.error(), command);
  }
  return error("ethosu.no-stop", "the command stream ends without OP_STOP");
}

// The index of the command after a branch.
Result<std::size_t> Machine::branch(Context& context, const Command& command, std::size_t next) const {
  const bool conditional = command.value >> 32 & 1;
  if (conditional) {
    if (context.result_flag == Context::Flag::unknown)
      return error("ethosu.undecidable", "it asks for the result of an operation with more than one result");
    if (context.result_flag == Context::Flag::off) return next;
  }
  TOSAIC_CHECK(context.spend(work_per_branch));
  const std::size_t byte = stream_.first_byte + (command.value & 0xffffffff);
  const auto found = std::lower_bound(commands_.begin(), commands_.end(), byte,
                                      [](const Command& c, std::size_t b) { return c.byte < b; });
  if (found == commands_.end() || found->byte != byte)
    return error("ethosu.branch", fmt::format("no command starts at its target, byte {:#x} of the commands",
                                              command.value & 0xffffffff));
  return static_cast<std::size_t>(found - commands_.begin());
}

Status Machine::execute(Context& context, const Command& command, const Trace& trace) {
  const auto parameter = static_cast<std::uint32_t>(command.value & 0xffff);
  const auto finish = [&](Result<OutputStage> done) -> Status {
    if (!done.ok()) return done.error();
    if (context.registers.missing()) return {};
    note_result(context, *done);
    if (!trace) return {};
    const OperationLine line = describe_operation(config(), context.registers, command);
    context.registers.forget_missing();  // the line may name registers that the operation does not need
    const std::string sum = done->stores() ? fmt::format("{:016x}", checksum(done->map())) : "-";
    trace(fmt::format("{:#08x} {:<16} {} sum {}", line.byte, line.name, line.text, sum));
    return {};
  };
  switch (command.row->opcode) {
    case op_conv: return finish(run_convolution(context, false, config().u85() && (parameter & 1)));
    case op_depthwise: return finish(run_convolution(context, true, false));
    case op_pool: return finish(run_pool(context, parameter & 7));
    case op_elementwise: return finish(run_elementwise(context, parameter & 63));
    case op_resize: return finish(run_resize(context, parameter & 3));
    case op_dma_start: {
      TOSAIC_CHECK(run_dma(context));
      if (!trace || context.registers.missing()) return {};
      const OperationLine line = describe_operation(config(), context.registers, command);
      trace(fmt::format("{:#08x} {:<16} {}", line.byte, line.name, line.text));
      return {};
    }
    case op_irq:
    case op_dma_wait:
    case op_kernel_wait:
    case op_pmu_mask: return {};  // in order anyway
    default: return error("ethosu.command", "an operation that is not known");
  }
}

void Machine::disassemble(bool with_registers, const std::function<void(const std::string&)>& line) const {
  Registers registers(config().u85());
  for (const Command& command : commands_) {
    if (!is_operation(*command.row)) registers.write(*command.row, command.value);
    if (with_registers)
      line(fmt::format("{:#08x} {} {}", command.byte, command.row->name, describe_fields(config().u85(), command)));
    if (!is_operation(*command.row)) continue;
    const OperationLine text = describe_operation(config(), registers, command);
    if (!with_registers || !text.text.empty()) line(fmt::format("{:#08x} {:<16} {}", text.byte, text.name, text.text));
  }
}

}  // namespace tosaic::ethosu
