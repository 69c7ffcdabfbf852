// SPDX-License-Identifier: Apache-2.0
// What a Method is made of. Private to method.cpp, load_method.cpp, staying.cpp and run_method.cpp.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/method.h"
#include "runtime/planned_memory.h"
#include "runtime/staying.h"

namespace tosaic::runtime {

// An instruction made ready.
struct DelegateStep {
  std::size_t delegate;
  std::vector<std::int32_t> args;
  // By argument: the type in memory of what does not lie in row-major order, which has one size.
  std::vector<std::optional<TensorType>> reordered = {};
  StayingArguments staying = {};
  enum class Newest : std::uint8_t { memory, both, delegate } newest = Newest::memory;  // who has their content
  std::vector<tosaic_delegate_tensor> arguments = {};                                   // of the call in hand
};
struct MoveStep {
  std::int32_t from, to;
};
struct JumpStep {
  std::int32_t condition;
  std::size_t destination;
  std::int64_t turns = 0;  // of the loop that it closes, since that was entered
};
struct NoStep {};
using Step = std::variant<std::unique_ptr<Kernel>, DelegateStep, MoveStep, JumpStep, NoStep>;

// What a method and its clones have in common.
struct Origin {
  pte::Plan plan;
  Options options;
  NamedData data;  // the program's and that of .ptd files
};

struct Method::Impl final : SharedMemory::Keeper {
  std::shared_ptr<const Origin> origin;
  PlannedMemory memory;
  Cells cells, first_cells;                              // now, and when it was loaded
  std::vector<std::unique_ptr<OpenDelegate>> delegates;  // null: no instruction calls it
  std::vector<Step> steps;
  std::vector<std::int32_t> inputs;                          // those that are tensors
  std::vector<char> lent;                                    // by input: may it stay in the caller's memory?
  std::vector<std::int32_t> outputs;                         // those that are tensors; lists of tensors in place
  std::vector<char> anywhere;                                // by output: may it be written to the caller's memory?
  std::vector<std::pair<std::size_t, std::int32_t>> others;  // outputs that are not: position and cell
  std::vector<TensorType> input_types, output_types;
  std::vector<std::vector<std::byte>> output_space;  // by output: its elements, where these do not lie in order
  std::vector<State> states;
  std::vector<std::int32_t> state_cells;
  bool timed = false;
  std::vector<double> seconds;                    // by step, of the last run
  std::vector<std::vector<OperationTime>> parts;  // by step: inside delegates

  Impl(std::shared_ptr<const Origin> from, std::shared_ptr<SharedMemory> shared)
      : origin(std::move(from)), memory(std::move(shared)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (memory.shared()) memory.shared()->leave(this);
  }
  const pte::Plan& plan() const { return origin->plan; }

  // ---- load_method.cpp
  Status load();
  Status copy(const Impl& from);
  Status place();
  Status add_output(std::int32_t i);
  Status prepare();
  Result<DelegateStep> prepare_delegate(const pte::DelegateCall& call);
  Status open_delegate(std::size_t number);
  Status check_fixed() const;
  void let_vary();
  void make_output_space();

  // ---- staying.cpp
  Status bring_back() override;
  void let_go() override;
  Status settle();

  // ---- run_method.cpp
  Status take(std::size_t i, const TensorView& given);
  std::vector<Bytes> borrow_outputs();
  void give_back();
  Status run_steps();
  Result<std::size_t> run_step(std::size_t pc);
  Status count_turn(std::size_t pc);
  Status execute(DelegateStep& step);
  Status resize_outputs(const DelegateStep& step);
  Result<bool> truth(std::int32_t condition) const;
  void note_parts(std::size_t step, const OpenDelegate& delegate, const std::string& id);
};

}  // namespace tosaic::runtime
