// SPDX-License-Identifier: Apache-2.0
// What a TOSA operator is. One file per operator under ops/tosa/ fills one row; the verifier, the interpreter,
// the flatbuffer reader and writer and every target are computed from these rows.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"

namespace tosaic::tosa {

// Profiles and extensions of TOSA (spec chapter 1, "Profiles", "Profile extensions"); the last ones are those of 1.1, a
// draft, which is a feature itself: what it adds without an extension asks for it.
enum class Feature : std::uint8_t {
  pro_int,
  pro_fp,
  int4,
  int16,
  bf16,
  fp8e4m3,
  fp8e5m2,
  fft,
  variable,
  controlflow,
  doubleround,
  inexactround,
  dynamic,
  v1_1,
  int64,
  shape,
  mxfp,  // block-scaled floats, in ExecuTorch's word: the draft has an extension for each type of element
};
std::string_view name_of(Feature feature);  // "PRO-INT", "EXT-INT16", "TOSA-1.1"

// Upper limits of a level (spec table "Level maximums"). Level none: only what the formats can hold.
struct Level {
  std::int64_t max_rank, max_kernel, max_stride, max_scale, max_log2_size, max_nesting, max_tensor_list;
};
inline constexpr Level level_none{32, 2147483647, 2147483647, 2048, 63, 256, 256};
inline constexpr Level level_8k{6, 8192, 8192, 256, 31, 6, 64};

class View;
struct Violation;

// A device that takes less than the standard allows. Asked about nodes that hold to the standard already.
struct Product {
  std::string_view name;  // "Ethos-U55"
  std::optional<Violation> (*check)(const View& view) = nullptr;
  std::uint64_t most_tensor_bytes = 0;  // 0: any
};

// What a TOSA graph may use: "TOSA-1.0+INT+int16+int4", "TOSA-1.1+FP+int64", with "+8k" for the level.
class Spec {
 public:
  Spec() = default;
  Spec(std::initializer_list<Feature> features, Level level = level_none);
  static Result<Spec> parse(std::string_view text);
  bool has(Feature feature) const { return (bits_ >> static_cast<unsigned>(feature)) & 1u; }
  void add(Feature feature) { bits_ |= 1u << static_cast<unsigned>(feature); }
  static Spec everything();  // all profiles and extensions, level none: what the interpreter takes
  static Spec everything_in_1_0();
  Level level = level_none;
  const Product* product = nullptr;  // a device's own limits, beyond the standard's
  std::string text() const;          // parses back; without the product
  // Of a weight in floats of 32 bits, which integers make a fourth of. 0: any.
  std::uint64_t most_weight_bytes(bool in_integers) const {
    return product ? product->most_tensor_bytes * (in_integers ? 4 : 1) : 0;
  }

 private:
  std::uint32_t bits_ = 0;
};

// One operand. `type` is a type variable bound by the operator's type rows ("in", "weight", "in_out", ...), or
// the name of a fixed dtype ("bool", "i8", "i32", "shape"), or "" for a list of any tensors.
struct Operand {
  std::string_view name;
  std::string_view type;
  int min_rank = 0;
  int max_rank = 64;      // 64: the level's MAX_RANK
  bool list = false;      // a tensor_list: takes all remaining operands
  bool constant = false;  // CTC: must be a compile-time constant unless EXT-DYNAMIC
};

// nan_mode is "propagate" or "ignore"; rounding_mode "single_round", "inexact_round" or "double_round";
// resize_mode "nearest" or "bilinear"; all three are strings in the IR. acc_type is a DType. `number` is one
// element of the type variable in_out (CLAMP's bounds): std::int64_t for integers, double for floats.
enum class AttrKind : std::uint8_t {
  i32,
  boolean,
  i32_list,
  nan_mode,
  rounding_mode,
  resize_mode,
  dtype,
  number,
  string
};
struct AttrDef {
  std::string_view name;
  AttrKind kind;
};

// One line of the operator's table of supported types: any one of `needs` admits it, together with `and_needs`
// where two extensions meet (CAST between bf16 and fp8).
struct TypeRow {
  std::vector<Feature> needs;
  std::vector<std::pair<std::string_view, DType>> types;  // type variable -> dtype; also "acc", "resize"
  std::optional<Feature> and_needs = std::nullopt;
};

// A broken rule: the label names the rule (tests are named after it), the message the values that disagree.
struct Violation {
  std::string label;    // "conv2d.output-size", "mul.shift-range"
  std::string message;  // "stride 0 must be at least 1"
};
using Check = std::optional<Violation>;

// A node with its types and constants at hand, as the row's functions see it.
class View {
 public:
  View(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}
  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  std::size_t inputs() const { return node_.inputs.size(); }
  const TensorType& in(std::size_t i) const { return graph_[node_.inputs[i]].type; }
  const TensorType& out(std::size_t i = 0) const { return graph_[node_.outputs[i]].type; }
  // The constant behind operand i; null Bytes when it is not a constant.
  const Bytes& constant(std::size_t i) const { return graph_[node_.inputs[i]].constant; }
  // The elements of a constant integer or shape operand; empty optional when not constant.
  std::optional<std::vector<std::int64_t>> constant_integers(std::size_t i) const;
  const std::vector<std::int64_t>& ints(std::string_view name) const;
  bool all_are(std::string_view name, std::int64_t number) const;  // of ints(name)
  std::int64_t integer(std::string_view name) const;
  bool flag(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  DType dtype(std::string_view name) const;

 private:
  const Graph& graph_;
  const Node& node_;
};

// Evaluates one region graph (control flow bodies): given by the interpreter.
using RunRegion = std::function<Result<std::vector<Tensor>>(const Graph&, std::vector<Tensor>)>;
// The contents of VARIABLEs by name; one map per run, shared with its regions.
using Variables = std::map<std::string, Tensor, std::less<>>;

// Operands at run time. The dtypes to compute with are those of the views, not of the graph: in precise mode
// every float tensor is f64. The outputs' memory is allocated, its content undefined.
struct Run {
  const View& view;
  std::span<const TensorView> in;
  std::span<const MutableTensorView> out;
  const RunRegion* region = nullptr;
  Variables* variables = nullptr;
};

// Numbers that the elements of a tensor lie between, whatever it is computed from.
struct Bounds {
  double lowest = -std::numeric_limits<double>::infinity(), highest = std::numeric_limits<double>::infinity();
  bool operator==(const Bounds&) const = default;
};
// Those of operand `i`. Looked up when asked for: weights are large.
using BoundsOf = std::function<Bounds(std::size_t i)>;

// What of its operands' elements a result has: a later one says more.
enum class Moves : std::uint8_t {
  nothing,
  compared,  // elements that are looked at: MAXIMUM, CLAMP, CAST; or booleans by which others are chosen: EQUAL
  chosen,    // as they are, where elements of another operand say: SELECT, GATHER, SCATTER
  some,      // where shapes and attributes alone say, some left out or others added: SLICE, PAD
  all,       // all of them and no others: TRANSPOSE, CONCAT
};

class CoreAten;
}  // namespace tosaic::tosa
namespace tosaic::extension {
class Definition;
}
namespace tosaic::tosa {

struct Op {
  std::string_view name;        // lower case: "conv2d"
  std::uint16_t schema_number;  // enum Op of the flatbuffer schema, and tag of its attribute table
  std::uint16_t spirv_number;   // instruction of the extended set TOSA.001000.1; 0xffff: has none
  std::string_view summary;     // one sentence
  std::vector<Operand> inputs;
  std::vector<AttrDef> attrs;  // in the order of the SPIR-V instruction's attribute operands
  std::vector<Operand> outputs;
  std::vector<TypeRow> types;  // empty: any types (CUSTOM, control flow)
  bool newer = false;          // than TOSA 1.0: the operator is 1.1's
  // The output types that the operands imply (ERROR_IFs about inputs are `check`'s; this may assume they hold).
  // Where operands leave the dtype open (CAST, MATMUL of f16) the declared output's is taken: give the node its
  // output before asking. Empty: not known before the program runs (EXT-DYNAMIC), or anything goes (CUSTOM).
  std::vector<TensorType> (*infer)(const View&) = nullptr;
  // ERROR_IF conditions beyond number, rank and type of operands. That the outputs are what infer says is compared
  // by verify_node for every operator, after this.
  Check (*check)(const View&) = nullptr;
  // Limits of a level beyond rank, tensor size and list length.
  Check (*level)(const View&, const Level&) = nullptr;
  // Reference evaluation: plain, exact (floats accumulate in double), the oracle. A Diagnostic with code
  // "tosa.unpredictable" where a REQUIRE fails.
  Status (*eval)(const Run&) = nullptr;
  Moves moves = Moves::nothing;
  // Each output element depends only on the operands' elements at its own (broadcast) place, so permuting the
  // dims of all operands that are not declared constant permutes the result.
  bool elementwise = false;
  // What the result's elements lie between, as numbers without end: not what a dtype wraps or overflows to, nor half a
  // step of its rounding. nullptr: the operands tell nothing. Asked by bounds_of.
  Bounds (*bounds)(const View&, const BoundsOf& in) = nullptr;
  // Every element of the result is made of many of an operand's: in f32, where floats are narrower.
  bool accumulates = false;
  // An operator of TOSA 1.1 in those of 1.0: appends nodes that compute the same, and gives what they make as its
  // results. Asked where its compile-time constants are known. nullptr: it is 1.0's, or computes shapes.
  std::vector<ValueId> (*in_1_0)(extension::Definition& definition) = nullptr;
  // How it is expressed in core ATen (core_aten.h): by an operator that means the same of the same operands, but for
  // the constant ones; or by the calls that this makes. False: not this node.
  Operator core_aten = {};
  bool (*in_core_aten)(const View&, CoreAten& calls) = nullptr;

  bool chooses() const { return moves != Moves::nothing; }
  // Of one tensor, and nothing looks at the elements: any dtype's scales pass through.
  bool keeps_scales() const;
};

std::span<const Op> all();  // sorted by name
// Families of operators.
constexpr bool is_variable(Operator op) {
  return op == op::variable || op == op::variable_read || op == op::variable_write;
}
constexpr bool is_reduction(Operator op) {
  return op == op::reduce_all || op == op::reduce_any || op == op::reduce_max || op == op::reduce_min ||
         op == op::reduce_product || op == op::reduce_sum;
}
constexpr bool is_bitwise(Operator op) {
  return op == op::bitwise_and || op == op::bitwise_not || op == op::bitwise_or || op == op::bitwise_xor;
}

const Op* find(Operator op);            // nullptr: it is none of TOSA's
const Op* find(std::string_view name);  // "conv2d"
const Op* by_schema_number(std::uint16_t n);
const Op* by_spirv_number(std::uint32_t n);  // of TOSA.001000.1

// Does `spec` have what the row of types needs?
bool admits(const Spec& spec, const TypeRow& row);

// Does this node hold to the standard within `spec`? The first rule that fails, in this order: number of
// operands, attributes, ranks, types (with the feature that would admit them), constants, ERROR_IF, level.
Check verify_node(const View& view, const Spec& spec);
Status verify_graph(const Graph& graph, const Spec& spec);
// Is it of an operator, or of types, that TOSA 1.0 does not have? Of a node that holds to the standard.
bool needs_1_1(const View& view);
// With EXT-DYNAMIC, zero points, shapes and the like may be known only when the program runs: holds their values to
// the same ERROR_IFs, and the outputs' shapes to what they imply. To be called before eval; free for other nodes.
Status check_run_time_operands(const Run& run);
// All that an integer type holds, or the elements of a constant are. {}: floats; none, or NaN among them.
Bounds bounds_of(DType type);
Bounds bounds_of(const Value& constant);
// What the row says of the first result of a node.
Bounds bounds_of(const View& view, const BoundsOf& in);
// What a node with constants as operands and one result of `type` computes; nullopt: its row cannot tell.
std::optional<Bytes> constant_result(const Graph& graph, const Node& node, const Op& op, const TensorType& type);

}  // namespace tosaic::tosa
