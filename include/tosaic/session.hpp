// SPDX-License-Identifier: Apache-2.0
// Something that runs: loaded once, run again and again.
//
//   auto session = tosaic::Session::load(*artifact);
//   auto outputs = session->run({image.view()});
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tosaic/compile.hpp"
#include "tosaic/program.hpp"
#include "tosaic/result.hpp"
#include "tosaic/tensor.hpp"

namespace tosaic {

struct SessionOptions {
  std::string executor = "cpu";    // "cpu" or "interp", the reference interpreter
  std::string method = "forward";  // of a .pte
  // Where TOSA graphs and VGF files run: "cpu" ("auto" is that), "vulkan" (by compute shaders), "vulkan-ml" (VGF, by
  // the ML extensions). Programs for "TosaicVulkan" run on Vulkan. "ethos-u": insist on a program whose delegates run
  // on the simulated NPU; "ethos-u55-128": on that very NPU.
  std::string device = "auto";
  std::string vulkan_device;                        // an index or a part of a name; empty: the best one
  std::vector<std::pair<std::string, Bytes>> data;  // .ptd files (name, content): what the program keeps outside itself
  std::function<void(const std::string&)> trace;    // one line per NPU operation with its result's checksum
  bool level_8k = false;                            // hold a .tosa to the limits of TOSA's level 8K
  // 0: all cores. Sessions with as many share one pool, the one that runs first has it.
  int threads = 0;
  static constexpr int most_threads = 1024;
  // Asked now and then, on the thread that runs, between two operations on the CPU: true ends the run (run.cancelled).
  std::function<bool()> cancelled = {};
  std::function<void(const std::string&)> told;  // a line about what a delegate or a device opens, and how much memory
};

// A Vulkan device of this machine.
struct VulkanDevice {
  std::uint32_t index = 0;
  std::string name;                // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string kind;                // "cpu", "integrated", "discrete", "virtual", "other"
  std::string version;             // of Vulkan: "1.3"
  bool runs_shaders = false;       // --device vulkan
  bool has_ml_extensions = false;  // --device vulkan-ml, without the emulation layer
  std::vector<std::string> tiers;  // of shaders that it runs, best first: "cpu", "base"
  // What it takes at most.
  std::uint64_t memory_bytes = 0;  // of its largest heap
  std::uint64_t range_bytes = 0;   // of one storage buffer
  std::uint64_t texels = 0;        // of one texel buffer
  std::uint32_t shared_bytes = 0, push_constant_bytes = 0;
  std::uint32_t group_invocations = 0, group_size[3] = {};
  std::string driver;                          // "llvmpipe, Mesa 22.3.6 (LLVM 15.0.6)"; empty: it does not say
  std::string driver_version;                  // "580.65.6"
  bool storage_8 = false, storage_16 = false;  // buffers of elements of 8 bits (i8, bool) and of 16 (i16, f16, bf16)
  std::vector<std::pair<std::string, std::string>> other_tiers;  // that it does not run, and what it lacks for them
};
// Errors: vulkan.no-loader, vulkan.no-driver, vulkan.version.
TOSAIC_API Result<std::vector<VulkanDevice>> vulkan_devices();

// How long a part of a run took.
struct OperationTime {
  // As what ran it calls it: "conv2d_i8: tosa.conv2d" (kernel and operator of the CPU executor), "aten::add.out" (a
  // kernel of a .pte), "TOSABackend" (a delegate).
  std::string operation;
  double seconds = 0;
  // The delegate inside which it ran, whose own entry stands before and includes this time; empty: none.
  std::string within;
  // The name of what it computes (of several operations run as one, the last), and where the user's program asks for
  // it: "features.3.conv, model.py:6". Empty where what ran does not say (a VGF file holds no source locations).
  std::string value, place;
};

// One session is for one thread at a time: a run during a run is refused (session.busy). Clones are for other threads.
class TOSAIC_API Session {
 public:
  // .pte, .tosa, .vgf, .pt2 (in floats, on the CPU executor) or graph text, distinguished by content; the memory is
  // kept alive, not copied. `name` stands for the file in messages. Errors: run.unknown-format, those of the formats,
  // run.device, delegate.*, kernel.*, memory.limit.
  static Result<Session> load(Bytes file, const std::string& name = "program", const SessionOptions& options = {},
                              const Messages& messages = {});
  static Result<Session> open(const std::string& path, const SessionOptions& options = {},
                              const Messages& messages = {});
  static Result<Session> load(const Artifact& artifact, const SessionOptions& options = {},
                              const Messages& messages = {});
  static Result<Session> load(const Program& program, const SessionOptions& options = {},
                              const Messages& messages = {});
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  const std::vector<TensorInfo>& inputs() const;  // the tensors that `run` takes
  // What the exported call takes: these tensors, and values that were fixed, which `run` is not given. Known of a .pte.
  const std::vector<Argument>& arguments() const;
  // PyTorch's pytree descriptions of a .pte's call and result, as in Program; empty: it has none.
  const std::string& input_tree() const;
  const std::string& output_tree() const;
  const std::vector<Argument>& outputs() const;      // of outputs that are no tensors the values of the last run
  const std::string& device() const;                 // "cpu", "interp", "vulkan: ...", "ethos-u55-128 (simulated)"
  const std::vector<OwnedTensor>& examples() const;  // inputs that came with the program; empty: none

  // Errors: session.busy, run.input-count, run.input-type (dtype, sizes, bounds), run.null, run.cancelled, and what
  // happens inside.
  Result<std::vector<Output>> run(std::span<const InputTensor> inputs);
  Result<std::vector<Output>> run(std::initializer_list<InputTensor> inputs) {
    return run(std::span<const InputTensor>(inputs.begin(), inputs.size()));
  }
  // The tensor outputs into the caller's memory. Also: run.output-count, run.output-type, run.overlap.
  Status run(std::span<const InputTensor> inputs, std::span<const OutputTensor> outputs);
  // One run that leaves nothing behind, so that the first real one takes no longer than the next: memory is touched,
  // what is made for the inputs' sizes is made, a device is awake. `inputs`: what it will be given like; none: its
  // examples, or zeros of the largest sizes. What a program keeps is as before. A session that has run is warm: nothing
  // happens. Errors: as of run.
  Status warm(std::span<const InputTensor> inputs = {});
  // The buffers that a program writes and keeps from run to run, by their names in the module. (Not VARIABLEs of TOSA.)
  const std::vector<TensorInfo>& states() const;
  // What a state holds now, and its new content. Errors: session.busy, run.state (no such name), run.state-type.
  Result<OwnedTensor> state(const std::string& name) const;
  Status set_state(const std::string& name, const InputTensor& content);
  // A program's state (buffers of a .pte, VARIABLEs of TOSA) is kept from run to run; now it is again what it was when
  // the session was loaded. Costs what the state's memory costs.
  Status reset();
  // Another session of the same program, for another thread, in its first state. The weights, packed for this
  // processor, are shared; memory for tensors is each one's own. This session may run meanwhile. What an Ethos-U or a
  // Vulkan device runs is loaded anew.
  Result<Session> clone() const;
  // How many clones it is worth to have at work at once, each on one thread: one for each core; on a Vulkan device 1.
  int useful_clones() const;
  // The methods of the program, in its order. (A method at several sizes is one for each.) Of a .pte or .pt2.
  const std::vector<std::string>& methods() const;
  // Another method of the program next to this one: the buffers that the methods keep together are one, weights as
  // well, and one of them runs at a time. (A clone's other methods go with the clone.) Error: method.missing.
  Result<Session> method(const std::string& name) const;
  // Keep the times of the runs that follow, or no longer: two looks at the clock for every operation. A clone begins
  // without. Error: session.busy.
  Status measure(bool on);
  // Where the time of the last run went, in the order of the program, loops added up; empty: it was not measured. The
  // interpreter and a .vgf on Vulkan tell no parts: one entry, named after the device, has the whole. Entries that are
  // within none add up to the run, but for copying its inputs and outputs. Error: session.busy.
  Result<std::vector<OperationTime>> profile() const;
  double device_seconds() const;  // of the last run by the device's own clock; 0: it has none

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tosaic
