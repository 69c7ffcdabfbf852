// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's program file (.pte) as plain structs, and its writer and checked reader. Nothing here executes.
// Field meanings: reference schema program.fbs of ExecuTorch 1.5.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "base/rope.h"
#include "ir/dtype.h"

namespace tosaic::pte {

// Where a tensor's memory comes from.
struct Planned {
  std::uint32_t memory_id = 1;
  std::uint64_t offset = 0;
};

struct TensorValue {
  DType dtype = DType::f32;
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> dim_order;  // empty: contiguous
  Bytes constant;                       // not null: constant data (or the initial value when planned too)
  bool is_planned = false;
  Planned planned;
  std::uint8_t shape_dynamism = 0;  // 0 static, 1 upper bound
  std::string external_name;        // data in a .ptd under this name
  std::string state_name;           // of a buffer that keeps its content from run to run
};
struct None {};
struct IntList {
  std::vector<std::int32_t> items;
};  // value indices, not integers
struct TensorList {
  std::vector<std::int32_t> items;
  bool optional = false;
};  // -1: None
using Value = std::variant<None, std::int64_t, bool, double, std::string, TensorValue, IntList, std::vector<double>,
                           std::vector<bool>, TensorList>;

struct OperatorName {
  std::string name, overload;
};  // "aten::add", "out"
struct KernelCall {
  std::int32_t op = 0;
  std::vector<std::int32_t> args;
};
struct DelegateCall {
  std::int32_t delegate = 0;
  std::vector<std::int32_t> args;
};
struct MoveCall {
  std::int32_t from = 0, to = 0;
};
struct JumpFalseCall {
  std::int32_t condition = 0, destination = 0;
};
struct FreeCall {
  std::int32_t value = 0;
};
using Instruction = std::variant<KernelCall, DelegateCall, MoveCall, JumpFalseCall, FreeCall>;

struct CompileSpec {
  std::string key;
  Bytes value;
};
struct Delegate {
  std::string id;
  Rope payload;  // of a file that was read: one piece
  std::vector<CompileSpec> specs;
};

struct Plan {
  std::string name = "forward";
  std::string input_spec, output_spec;  // container metadata, may be empty
  std::vector<Value> values;
  std::vector<std::int32_t> inputs, outputs;
  std::vector<Instruction> instructions;  // one chain
  std::vector<OperatorName> operators;
  std::vector<Delegate> delegates;
  std::vector<std::int64_t>
      arena_sizes;  // arena_sizes[k] is memory_id k + 1 (the reserved entry 0 is the writer's business)
};

struct NamedData {
  std::string key;
  Rope data;  // of a file that was read: one piece
  std::uint32_t alignment = 16;
};

struct Program {
  std::uint32_t version = 0;
  std::vector<Plan> plans;
  std::vector<NamedData> named_data;
};

// By key.
std::map<std::string, Bytes> data_of(const Program& program);

struct WriteOptions {
  std::uint32_t segment_alignment = 128;
  bool delegates_in_segments = true;  // else inline in the flatbuffer
};

// Constants and payloads are not copied: the result's pieces are what the program holds.
Result<Rope> write(const Program& program, const WriteOptions& options = {});
// Every index, offset, size, enum and union is checked; the payloads are views into `file`. `name` is for messages.
Result<Program> read(const Bytes& file, const std::string& name);

}  // namespace tosaic::pte
