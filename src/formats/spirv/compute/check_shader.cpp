// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/compute/check_shader.h"

#include <fmt/format.h>

#include "formats/spirv/compute/check_instructions.h"
#include "formats/spirv/compute/uniform_flow.h"

namespace tosaic::spirv {
namespace {

constexpr Word most_depth = 64;  // of blocks
constexpr Word dont_unroll = 2;  // a loop's hint; below it, to unroll it and none

// The function: how its blocks nest, and that all invocations come to each barrier.
class Checker : CheckedInstructions {
 public:
  explicit Checker(std::span<const Word> words) : CheckedInstructions(words) {}

  Result<ShaderInterface> check() {
    try {
      header();
      preamble();
      decorations();
      globals();
      function();
      return result_;
    } catch (const Wrong& w) { return error("vulkan-program.shader", fmt::format("word {}: {}", before_, w.what)); }
  }

 private:
  void function() {
    const Instruction f = take(Opcode::function, 4);
    need(is(f.operands[0], Type::nothing) && f.operands[1] == function_ && f.operands[2] == 0 &&
             is(f.operands[3], Type::function),
         "a function of another kind");
    define(function_, 0);
    label(take(Opcode::label, 1).operands[0]);
    while (comes(Opcode::variable)) {
      const Instruction v = take(Opcode::variable, 3);
      need(is(v.operands[0], Type::pointer, storage_function) && v.operands[2] == storage_function,
           "a variable of another type");
      define(v.operands[1], v.operands[0]);
    }
    need(!region(0, 0), "the function does not return");
    take(Opcode::function_end, 0);
    need(at_ == words_.size(), "there is something after the function");
    need(exact_.empty(), "something else than arithmetic of reals that must be exact");
    need(interface_ids_.size() == inputs_.size(), "an input that is not there");
    need(!has_barrier_ || !leaves_early_, "a barrier that some invocations do not reach");
    need(flow_.barriers_are_uniform(bound_), "a barrier that some invocations may not reach");
  }

  void label(Id id) { define(id, 0); }
  void expect_label(Id wanted) {
    const Id id = take(Opcode::label, 1).operands[0];
    need(id == wanted, "another block than the expected one");
    label(id);
  }

  // Ids of a region are seen by it alone.
  class Scope {
   public:
    explicit Scope(Checker& c) : checker_(c), size_(c.visible_.size()) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      for (std::size_t i = size_; i < checker_.visible_.size(); ++i) checker_.types_of_.erase(checker_.visible_[i]);
      checker_.visible_.resize(size_);
    }

   private:
    Checker& checker_;
    const std::size_t size_;
  };

  // Instructions up to the region's end: a branch to `end` (true), or a return (false; the only end where `end` is 0).
  bool region(Id end, Word depth) {
    need(depth < most_depth, "blocks nest too deep");
    for (;;) {
      const Instruction i = next();
      switch (i.opcode) {
        case Opcode::return_:
          need(i.operands.empty(), "a return with a value");
          leaves_early_ |= depth > 0;
          return false;
        case Opcode::branch:
          need(i.operands.size() == 1, "an instruction of another length");
          if (end != 0 && i.operands[0] == end) return true;
          loop(i.operands[0], depth);
          break;
        case Opcode::selection_merge:
          need(i.operands.size() == 2 && i.operands[1] == 0, "a selection with hints");
          selection(i.operands[0], depth);
          break;
        case Opcode::control_barrier: barrier(i); break;
        default: plain(i);
      }
    }
  }

  void selection(Id after, Word depth) {
    const Instruction b = take(Opcode::branch_conditional, 3);
    need(is_boolean(type_of(b.operands[0])), "a condition that is no boolean");
    need(b.operands[1] != b.operands[2] && b.operands[1] != after, "a branch that does not branch");
    flow_.enter(b.operands[0]);
    {
      const Scope scope(*this);
      expect_label(b.operands[1]);
      region(after, depth + 1);
    }
    if (b.operands[2] != after) {
      const Scope scope(*this);
      expect_label(b.operands[2]);
      region(after, depth + 1);
    }
    flow_.leave();
    expect_label(after);
  }

  void loop(Id header, Word depth) {
    expect_label(header);
    const Instruction merge = take(Opcode::loop_merge, 3);
    const Id after = merge.operands[0], continuing = merge.operands[1];
    need(merge.operands[2] <= dont_unroll && after != continuing, "a loop with other hints");
    const Id test = take(Opcode::branch, 1).operands[0];
    {
      const Scope scope(*this);
      expect_label(test);
      while (!comes(Opcode::branch_conditional)) {
        need(!comes(Opcode::store), "a store in a loop's test");
        plain(next());
      }
      const Instruction b = take(Opcode::branch_conditional, 3);
      need(is_boolean(type_of(b.operands[0])) && b.operands[2] == after && b.operands[1] != after,
           "a loop that does not end as loops do");
      flow_.enter(b.operands[0]);
      {
        const Scope body(*this);
        expect_label(b.operands[1]);
        need(region(continuing, depth + 1), "a loop whose body returns");
      }
      expect_label(continuing);
      while (!comes(Opcode::branch)) plain(next());
      need(take(Opcode::branch, 1).operands[0] == header, "a loop that does not begin again");
      flow_.leave();
    }
    expect_label(after);
  }

  void plain(const Instruction& i) {
    typed(i);
    if (is_of_reals(i.opcode)) exact_.erase(i.operands[1]);
    if (is_of_matrices(i.opcode)) all_come();
    if (i.opcode == Opcode::cooperative_matrix_store) return;
    if (i.opcode == Opcode::store) {
      if (type(type_of(i.operands[0])).size == storage_function) flow_.store(i.operands[0], i.operands[1]);
      return;
    }
    const auto from = i.operands.subspan(2);
    bounds_.result(i.opcode, i.operands[1], from);
    switch (i.opcode) {
      case Opcode::load: return loaded(i.operands[1], i.operands[2]);
      case Opcode::composite_extract: return flow_.value(i.operands[1], from.first(1));
      case Opcode::ext_inst: return flow_.value(i.operands[1], from.subspan(2));
      default: return flow_.value(i.operands[1], from);
    }
  }

  static bool is_of_reals(Opcode opcode) {
    switch (opcode) {
      case Opcode::f_negate:
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul:
      case Opcode::f_div:
      case Opcode::f_ord_equal:
      case Opcode::f_ord_less_than:
      case Opcode::f_ord_greater_than:
      case Opcode::f_ord_less_than_equal:
      case Opcode::f_ord_greater_than_equal: return true;
      default: return false;
    }
  }

  // What a load is known to give.
  void loaded(Id id, Id pointer) {
    switch (type(type_of(pointer)).size) {
      case storage_function: return flow_.value(id, {{pointer}});
      case storage_push: return;
      case storage_input:
        if (decoration(pointer, decoration_built_in) == built_in_group) return;
        if (decoration(pointer, decoration_built_in) == built_in_local) bounds_.bounded(id, result_.group_size - 1);
        break;
      default: break;
    }
    flow_.varying(id);
  }

  void barrier(const Instruction& i) {
    need(i.operands.size() == 3, "an instruction of another length");
    need(is_constant(i.operands[0], scope_group) && is_constant(i.operands[1], scope_group) &&
             is_constant(i.operands[2], acquire_release_shared),
         "a barrier of another kind");
    all_come();
  }
  // Here every invocation of the group must be.
  void all_come() {
    has_barrier_ = true;
    flow_.barrier();
  }

  UniformFlow flow_;
  bool has_barrier_ = false, leaves_early_ = false;
};

}  // namespace

Result<ShaderInterface> check_shader(std::span<const Word> words) { return Checker(words).check(); }

}  // namespace tosaic::spirv
