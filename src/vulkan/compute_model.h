// SPDX-License-Identifier: Apache-2.0
// A program of compute shaders on a Vulkan device, ready to run again and again: pipelines made, weights uploaded,
// commands recorded. Works on every device with Vulkan 1.1.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/vulkan_program/vulkan_program.h"

namespace tosaic::vulkan {

struct DispatchTime {
  std::string kernel, value, place;  // as the program has them
  double seconds = 0;
};

// What does not leave the device. Empty: nothing.
struct Staying {
  std::vector<std::uint32_t> origins;  // by input: 0, or 1 + the number of the last run's output that it is
  std::vector<char> outputs;           // by output: does it stay?
  bool operator==(const Staying&) const = default;
};

class ComputeModel {
 public:
  // `program` came from vulkan_program::read, or from our own compiler: what is checked there is not checked again.
  // `device`: an index, a part of a name, or empty: the best one. Errors: vulkan.no-loader, vulkan.no-driver,
  // vulkan.version, vulkan.tier, vulkan.feature, vulkan.limit, vulkan.device, vulkan.memory, vulkan.failed.
  // `told`: is given a line with the sizes of the three memories before any of them is taken.
  static Result<ComputeModel> load(vulkan_program::Program program, const std::string& device = "",
                                   const std::function<void(const std::string&)>& told = {});
  ComputeModel(ComputeModel&&) noexcept;
  ComputeModel& operator=(ComputeModel&&) noexcept;
  ~ComputeModel();

  const std::vector<vulkan_program::Tensor>& inputs() const;
  const std::vector<vulkan_program::Tensor>& outputs() const;
  std::string device() const;
  const std::string& tier() const;  // the name of the one that runs
  // Of activations, inputs and outputs; weights are shared (compute_constants.h).
  std::uint64_t memory_bytes() const;

  // Inputs of these shapes from now on, until then those at the bounds: commands are recorded anew, pipelines and
  // memory stay. Gives the outputs' shapes. Errors: model.size, vulkan.failed.
  Result<std::vector<Shape>> resize(std::span<const Shape> inputs);
  // Dense row-major tensors. One call at a time for each model. Errors: vulkan.lost, vulkan.memory, vulkan.failed.
  // Pointers of what stays on the device, and of inputs that stayed there, are not used.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, const Staying& staying = {});
  // Whether an output can stay: nothing else lies in its memory.
  bool can_stay(std::size_t output) const;
  // An output of the last run, as many bytes as it had there. Errors: those of `run`.
  Status fetch(std::size_t output, std::span<std::byte> to);
  // Of the last run, by the device's clock; 0: it has none.
  double device_seconds() const;
  // Time each dispatch from the next run on: each then waits for the one before. Errors: vulkan.failed.
  Status measure(bool on);
  std::vector<DispatchTime> times() const;
  // Another one with the same pipelines and weights and memory of its own.
  Result<ComputeModel> clone() const;

 private:
  struct Shared;
  struct Session;
  ComputeModel(std::shared_ptr<Shared> shared, std::unique_ptr<Session> session);
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Session> session_;
};

}  // namespace tosaic::vulkan
