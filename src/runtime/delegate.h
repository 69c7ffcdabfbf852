// SPDX-License-Identifier: Apache-2.0
// A delegate runs one kind of payload inside a program: "TOSABackend" runs TOSA flatbuffers. Programs name delegates
// by id; a method is given the ones that it may use, so nothing is registered globally.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/tensor.h"

namespace tosaic::runtime {

// Data outside the delegates' payloads, by key: from the program itself or from .ptd files.
using NamedData = std::map<std::string, Bytes>;

struct DelegateContext {
  int threads = 0;
  bool interpret = false;     // the reference interpreter instead of the fast executor
  std::string name;           // for messages
  std::string product;        // the NPU that a stream must be made for; empty: any
  std::string vulkan_device;  // an index, a part of a name, or empty: the best one
  const NamedData* data = nullptr;
  std::function<void(const std::string&)> trace;  // one line per operation, where the delegate has operations
};

class Delegate {
 public:
  virtual ~Delegate() = default;
  // Once, before the first execution. The payload stays valid as long as the delegate lives. `arguments` are the types
  // of the call's tensors, inputs first, then outputs; where one ends and the other begins the payload knows.
  virtual Status init(const Bytes& payload, std::span<const pte::CompileSpec> specs,
                      std::span<const TensorType> arguments, const DelegateContext& context) = 0;
  // After init: how many of the arguments are inputs. The rest is written.
  virtual std::size_t inputs() const = 0;
  // After init, what it runs on, for people: "cpu", "ethos-u55-128 (simulated)".
  virtual std::string device() const { return "cpu"; }
  // How long the last execution took by the device's own clock; 0: there is none.
  virtual double device_seconds() const { return 0; }
  // After a refusal: the payload may be right, and what it does is only not known here.
  virtual bool undecided() const { return false; }
  // Dense row-major tensors in the order and of the types that init was given.
  virtual Status execute(std::span<void* const> arguments) = 0;
};

using DelegateFactory = std::function<std::unique_ptr<Delegate>()>;
using Delegates = std::map<std::string, DelegateFactory>;

std::unique_ptr<Delegate> tosa_delegate();        // "TOSABackend"
std::unique_ptr<Delegate> vgf_delegate();         // "VgfBackend", on the CPU
std::unique_ptr<Delegate> vgf_vulkan_delegate();  // "VgfBackend", on a Vulkan device
std::unique_ptr<Delegate> ethos_u_delegate();     // "EthosUBackend", simulated
// The delegates that tosaic has of itself. `on_vulkan`: VGF files run on a Vulkan device instead of the CPU.
Delegates default_delegates(bool on_vulkan = false);

}  // namespace tosaic::runtime
