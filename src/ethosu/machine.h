// SPDX-License-Identifier: Apache-2.0
// The simulator: a command stream opened once and run as often as one likes. A functional simulation, checked against
// TOSA, not against silicon, and not cycle-accurate.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "ethosu/context.h"

namespace tosaic::ethosu {

// One command, decoded. `byte` counts from the container's start.
struct Command {
  std::size_t byte = 0;
  const Row* row = nullptr;
  std::uint64_t value = 0;  // parameter, or payload with the parameter above
};
// Errors: ethosu.command with the byte where it stands.
Result<std::vector<Command>> decode_commands(const Stream& stream);

struct Options {
  int threads = 2;
  bool slow = false;        // the plain loops instead of the fast kernels
  double most_work = 1e13;  // multiplications and elements that one run may take
};

// What an operation's line in a listing or a trace says.
struct OperationLine {
  std::size_t byte = 0;
  std::string name;  // "CONV", "POOL average"
  std::string text;  // shapes, addresses, formats
};

struct Requirements {
  std::array<std::uint64_t, max_regions> region_bytes{};  // the most that the commands reach, 0: region not used
  std::array<bool, max_regions> written{};
  std::size_t operations = 0;
};

class Machine {
 public:
  // `constants`: what region 0 holds; it is kept, never written, and decoded weights stay valid.
  static Result<std::unique_ptr<Machine>> open(const Bytes& container, const Bytes& constants, const Options& options);
  // Commands without a container, as the NPU itself fetches them.
  static Result<std::unique_ptr<Machine>> open(Stream stream, const Bytes& constants, const Options& options);

  const Config& config() const { return stream_.config; }
  int container_version() const { return stream_.container_version; }
  const Requirements& requirements() const { return requirements_; }
  const std::vector<Command>& commands() const { return commands_; }
  // One line per operation; a register listing besides with `registers`.
  void disassemble(bool registers, const std::function<void(const std::string&)>& line) const;

  // `regions[0]` may be empty: then the constants serve. trace: one line per operation, with its result's checksum.
  using Trace = std::function<void(const std::string&)>;
  // Called with each command before it is executed: how far a run came, and what the registers say there.
  using Reached = std::function<void(const Command&, const Registers&)>;
  Status run(const Regions& regions, const Trace& trace = {}, const Reached& reached = {});

 private:
  Machine(Stream stream, Bytes constants, const Options& options);
  Result<std::size_t> branch(Context& context, const Command& command, std::size_t next) const;
  Status execute(Context& context, const Command& command, const Trace& trace);
  Status measure();

  Stream stream_;
  std::vector<Command> commands_;
  Bytes constants_;
  Options options_;
  Requirements requirements_;
  WeightCache weights_;
  ThreadPool pool_;
  std::vector<Scratch> scratch_;
};

// The line for the operation that `command` starts with these registers.
OperationLine describe_operation(const Config& config, const Registers& registers, const Command& command);
// "activation_type=signed" for all fields of a command.
std::string describe_fields(bool u85, const Command& command);
// Extents of all that an operation touches; those that make no sense are left out (running will tell).
void measure_operation(const Config& config, const Registers& registers, const Command& command,
                       Requirements& requirements);

}  // namespace tosaic::ethosu
