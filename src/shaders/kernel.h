// SPDX-License-Identifier: Apache-2.0
// One dispatch being made: a shader, and what it is given. Numbers that belong to the shapes at hand are parameters and
// no part of the shader, so that one module serves every layer of its kind: two dispatches with the same words are one.
#pragma once
#include <map>
#include <utility>
#include <variant>

#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "ir/extent.h"
#include "ops/definitions/tosa_op.h"
#include "plan/uses.h"
#include "shaders/shader.h"

namespace tosaic::shaders {

using vulkan_program::TierId;
using vulkan_program::TierSet;

struct QuantisedMatrices;

// What kernels are made for.
struct Work {
  const Graph& graph;
  const plan::Uses& uses;  // of the graph
  TierId tier;
  bool in_half_precision = false;  // f16 is how values are kept, and nothing that operators round to (half_precision.h)
  // Values that nobody stores, as their elements went where a data layout operator takes them: none is read by looking
  // through that.
  const std::vector<bool>* unstored = nullptr;
  bool is_stored(ValueId v) const { return !unstored || !(*unstored)[v]; }
  QuantisedMatrices* matrices = nullptr;  // those that have been packed already (quantised_weights.h)
};

// Bindings of one dispatch. Vulkan promises four; the devices of the last ten years have sixteen and more.
inline constexpr std::size_t most_buffers = 12;

// Whose devices multiply matrices, of f16 at least; of 8-bit integers, too; and four quantised values in a word by
// four others.
inline constexpr TierSet tiers_of_int8_matrices = vulkan_program::tiers_of(TierId::coopmat_int8),
                         tiers_of_matrices = vulkan_program::tiers_of(TierId::coopmat_int8, TierId::coopmat),
                         tiers_of_dots = vulkan_program::tiers_of(TierId::coopmat_int8, TierId::coopmat, TierId::dot);

// Does this tier read by texel views?
bool reads_texels(TierId tier);
// Do invocations of a group share memory in it?
bool shares_memory(TierId tier);
// Is f16 no operator's result but how values are kept, and the way that the last bit goes the device's?
bool packs_f16(const Work& work);

// Memory that a node's dispatches pass among themselves, or that one keeps for itself, at an offset from its beginning.
struct Scratch {
  std::uint64_t offset = 0, bytes = 0;
  bool operator<(const Scratch& other) const { return offset < other.offset; }
};

// What a binding is bound to: a value of the graph, constant words of the kernel's own, or scratch memory.
using What = std::variant<ValueId, Bytes, Scratch>;
struct Bound {
  What what;
  bool written = false;
  vulkan_program::View view = vulkan_program::View::buffer;
  bool quads = false;  // a whole number of them
};

// What a shader is told: an integer, or 1 / it as a float.
struct Push {
  Dim number;
  bool reciprocal = false;
};

struct Made {
  std::string name;  // "conv2d"
  std::vector<Word> module;
  std::vector<Bound> bound;  // by binding
  std::vector<Push> pushes;  // at most most_pushes; of those that are no numbers the inputs' sizes make some
  std::uint32_t group_size = Shader::usual_group_size;
  Dim invocations;
};

// Work groups that share what they compute.
struct Groups {
  Dim count;
  std::uint32_t size = Shader::usual_group_size;
};

// Elements that are computed each by itself: of many, an invocation computes several, far apart.
struct Elements {
  Dim count;
  std::int64_t at_once = 1;
  Elements(const Work& work, const Dim& elements);
  Dim invocations() const { return ceil_div(count, at_once); }
};

class Kernel : public Shader {
 public:
  Kernel(const Work& work, std::string name, const Dim& invocations,
         std::uint32_t group_size = Shader::usual_group_size);
  // By groups: there is no index(), and there may be more of them than asked for.
  Kernel(const Work& work, std::string name, const Groups& groups);

  // Have tables of one type one binding together? Where there would be too many.
  bool joins_tables = false;
  // Is the last bit of a reciprocal one that quantised values may depend on?
  bool rounds_reciprocals = false;
  // While one is alive, numbers that have no room among the push constants are read from a buffer. Not for those of
  // which a device must know that all invocations have the same: bounds of loops with barriers.
  class MoreParams {
   public:
    explicit MoreParams(Kernel& kernel) : kernel_(kernel), before_(std::exchange(kernel.has_more_params_, true)) {}
    ~MoreParams() { kernel_.has_more_params_ = before_; }
    MoreParams(const MoreParams&) = delete;
    MoreParams& operator=(const MoreParams&) = delete;

   private:
    Kernel& kernel_;
    bool before_;
  };

  const Work& work() const { return work_; }
  const Graph& graph() const { return work_.graph; }
  const TensorType& type(ValueId v) const { return graph()[v].type; }

  // The number of this invocation.
  Value index() const { return index_; }
  // A number that the shader is told when it runs: sizes that the inputs choose are such.
  Value param(const Dim& number) { return told({number}); }
  Value real_param(double number);

  // One binding for a value, however often it is asked for; as a texel view where the tier reads faster so.
  Buffer input(ValueId v, bool quads = false);
  Buffer input_words(ValueId v, bool quads = true);  // of elements of 8 or 16 bits, in words or four of them
  // A constant that is looked up: where its elements begin, too.
  struct Table {
    Buffer buffer;
    std::int64_t first;
  };
  Table table(ValueId v);
  Buffer output(ValueId v, bool quads = false);
  Buffer constant(DType type, Bytes elements, bool quads = false);
  // Of quads.
  Buffer read_scratch(DType type, const Scratch& scratch) { return read(type, true, scratch); }
  Buffer write_scratch(DType type, const Scratch& scratch);
  Buffer integers(const std::vector<std::int32_t>& numbers);
  // A constant of one element as a parameter, in the form in which load() gives it.
  Value scalar(ValueId v);

  // Several times the same, for values that differ: with the parameters and constants of the first time.
  void repeat(int times, const std::function<void(int i)>& body);

  // Calls body(index) for each of the elements that are this invocation's, of all.invocations().
  void for_each(const Elements& all, const std::function<void(Value index)>& body);

  // More parameters or buffers than a device takes: what is made of it cannot run.
  bool fits() const { return !overflowed_ && made_.bound.size() <= most_buffers; }
  Made made();

 private:
  const Work work_;
  Made made_;
  Buffer read(DType type, bool quads, What what);
  Value told(const Push& push);
  Value told_by_buffer(std::size_t place, const Push& given);

  std::map<std::pair<ValueId, bool>, Buffer> inputs_, outputs_, words_;
  struct Tables {
    Buffer buffer;
    std::size_t binding = 0;
    std::vector<ValueId> values;  // one behind the other
  };
  std::map<DType, Tables> tables_;
  std::vector<Value> params_;
  std::vector<std::int32_t> more_numbers_;  // behind those, and the parameters that they are
  std::vector<Quad> more_params_;
  std::optional<Buffer> more_params_buffer_;
  std::size_t more_params_binding_ = 0;
  bool has_more_params_ = false;
  std::vector<Buffer> constants_;
  std::size_t next_param_ = 0, next_constant_ = 0;  // smaller than their counts: the body is repeated
  bool overflowed_ = false;
  Value index_;
};

}  // namespace tosaic::shaders
