// SPDX-License-Identifier: Apache-2.0
// TOSA graphs as C, for microcontrollers: a function that calls a function for each step, memory that is planned,
// weights that are constants. What it calls is device/mcu/tosaic_mcu.h.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::c_source {

// An array that functions read: weights, tables. Equal ones are one.
struct ConstantArray {
  std::string name;
  TensorType type;
  Bytes data;
};

// A step of the function, for reports.
struct PrintedStep {
  std::string function;
  std::string operators;  // "CONV2D, RESCALE"
  std::string place;      // "features.3.conv, model.py:6"
};

// A tensor in the arena where most is alive.
struct PeakTensor {
  std::string name;  // "relu_3"
  TensorType type;
  std::string place;  // of the node that makes it
};

// Who may call a function or read an array: other files, or its own alone.
enum class Linkage : std::uint8_t { external, internal };

// Whose kernels convolutions call: those of device/mcu, or Arm's CMSIS-NN where its results are the same.
enum class Kernels : std::uint8_t { tosaic, cmsis_nn };

struct Printed {
  std::string function;                  // "net_steps"
  std::string declaration;               // "void net_steps(const int8_t *in0, int8_t *out0)"
  std::string code;                      // definitions; those of steps and of bodies come first
  std::vector<ConstantArray> constants;  // that they read, declared by who writes the file
  std::vector<PrintedStep> steps;
  std::uint64_t arena_bytes = 0;    // static memory
  std::vector<PeakTensor> at_peak;  // of it, but for bodies of control flow; the largest first
};

// `name` begins the names of all functions and arrays; NAME_steps is the one that calls the others. Pointers to dense
// tensors come in the order of the graph's inputs and outputs. The graph holds tosa.* nodes alone, and sizes are
// numbers. Error: c.unsupported, at the node.
Result<Printed> print_function(const Graph& graph, const std::string& name, Linkage linkage = Linkage::external,
                               Kernels kernels = Kernels::tosaic);

// Is there C for the node?
bool has_c(const tosa::View& view);

// The definition of an array: 'static const int8_t NAME[2] TOSAIC_WEIGHTS = {1,2,};'
std::string print_array(const ConstantArray& array, Linkage linkage = Linkage::internal);
// What printed functions call: names and texts of the files device/mcu/tosaic_*.
std::span<const std::pair<std::string_view, std::string_view>> mcu_files();

}  // namespace tosaic::c_source
