// SPDX-License-Identifier: Apache-2.0
// Builder: the vocabulary in which lowerings are written. It appends TOSA nodes to a graph, fills in what
// TOSA wants spelled out (equal ranks, zero-point operands, shape constants), folds what is constant, and
// gives each node the location of the call being lowered.
//
// It is also where integer forms come from: on quantised operands (types with Scales) the same words build
// the integer arithmetic. `conv2d` on i8 makes the int32 accumulator and the rescale to the type that is wanted;
// `clamp` quantises its bounds; `scaled` only changes the type.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic {

class Builder;

// A value being built. Cheap to copy; valid as long as its builder.
class Val {
 public:
  Val() = default;
  Val(Builder* builder, ValueId id) : builder_(builder), id_(id) {}
  ValueId id() const { return id_; }
  const TensorType& type() const;
  DType dtype() const { return type().dtype; }
  const Shape& shape() const { return type().shape; }
  int rank() const { return type().rank(); }
  std::int64_t dim(int i) const { return shape().size(i < 0 ? i + rank() : i); }
  bool is_constant() const;
  Builder& builder() const { return *builder_; }

 private:
  Builder* builder_ = nullptr;
  ValueId id_ = no_value;
};

// Thrown by lowerings, caught where a node is lowered: this call cannot be expressed, and why.
struct Refusal {
  Diagnostic why;
};

class Builder {
 public:
  // `spec`: what the target takes, for operators with several lowerings; nullptr: anything.
  explicit Builder(Graph& graph, const tosa::Spec* spec = nullptr)
      : graph_(graph), spec_(spec), counter_(graph.values.size()) {}
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;
  virtual ~Builder() = default;

  Graph& graph() { return graph_; }
  const LocRef& loc() const { return loc_; }
  void set_loc(LocRef loc) { loc_ = std::move(loc); }
  [[noreturn]] void refuse(std::string code, std::string message) const;

  // What is known of the call being lowered, which other calls are parts of.
  struct CallState {
    // The quantised type that is wanted of the result: accumulating operators rescale to it at once. Unset: float, or
    // the operator chooses.
    std::optional<TensorType> wanted = std::nullopt;
    // Its rounding shows: its quotients, roots and logarithms are the nearest floats (ops/lowering/exact.h).
    bool exact = false;
    // Its roundings to half precision are counted, as a whole; wide_from: its half-precision floats are f32 in the
    // nodes from there on (ops/half_precision.h).
    bool counted = false;
    std::optional<std::size_t> wide_from = std::nullopt;
  };
  const CallState& call() const { return call_; }
  // Changes that, for as long as it lasts.
  class Scope {
   public:
    explicit Scope(Builder& builder) : builder_(builder), before_(builder.call_) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { builder_.call_ = std::move(before_); }
    CallState* operator->() { return &builder_.call_; }

   private:
    Builder& builder_;
    CallState before_;
  };
  virtual bool exact() const { return call_.exact; }

  // ---- constants
  Val constant(TensorType type, Bytes data, std::string name = {});
  Val scalar(double value, DType type);                      // rank 0
  Val filled(double value, DType type, const Shape& shape);  // TILE-free: data is materialised
  Val integers(std::span<const std::int64_t> values, DType type, const Shape& shape);
  Val shape_constant(std::vector<std::int64_t> values);  // CONST_SHAPE

  // ---- any TOSA operator, operands as TOSA wants them; output types are inferred
  Val tosa(Operator op, std::initializer_list<Val> operands, Attrs attrs = {});
  Val tosa(Operator op, std::vector<Val> operands, Attrs attrs = {});
  // `result`: the output's dtype where the operands do not imply it (cast, rescale, resize).
  virtual std::vector<Val> tosa_all(Operator op, std::vector<Val> operands, Attrs attrs = {},
                                    std::optional<DType> result = std::nullopt);

  // ---- another ATen operator, e.g. aten(aten::op::sum_dim_IntList, {x}, {{"dim", ints}, {"keepdim",
  // true}}): lowered at once. A Composer (ops/composer.h) writes it down as a node.
  Val aten(Operator op, std::vector<std::optional<Val>> operands, Attrs attrs = {});
  virtual std::vector<Val> aten_all(Operator op, std::vector<std::optional<Val>> operands, Attrs attrs = {});
  // Whether operators on constants are evaluated at once (the default) or left as nodes (trial lowering).
  void fold(bool on) { fold_ = on; }
  const tosa::Spec* spec() const { return spec_; }
  // Do the nodes appended since index `first_node` hold to the spec? And if not, why.
  bool accepts_from(std::size_t first_node) const;
  Diagnostic why_not_from(std::size_t first_node) const;

  // ---- shapes
  Val reshape(Val x, Shape shape);                     // no node when nothing changes
  Val transpose(Val x, std::vector<int> permutation);  // output dim i is input dim permutation[i]
  Val slice(Val x, std::vector<std::int64_t> start, std::vector<std::int64_t> size);
  Val slice_axis(Val x, int axis, std::int64_t start, std::int64_t size);
  Val concat(std::vector<Val> parts, int axis);
  // before, after: elements added on each side of each dim, >= 0. value is real (quantised by x's scales).
  Val pad(Val x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value);
  Val tile(Val x, std::vector<std::int64_t> multiples);
  Val broadcast_to(Val x, const Shape& shape);  // PyTorch's expand: prepends dims, tiles size-1 dims
  Val squeeze(Val x, const std::vector<int>& axes);
  Val unsqueeze(Val x, int axis);

  // ---- arithmetic with PyTorch's broadcasting (ranks may differ, operands must agree in dtype)
  Val binary(Operator op, Val a, Val b, Attrs attrs = {});
  Val add(Val a, Val b);
  Val sub(Val a, Val b);
  Val mul(Val a, Val b);  // quantised operands: scales multiply
  Val add(Val a, double b) { return add(a, like(a, b)); }
  Val sub(Val a, double b) { return sub(a, like(a, b)); }
  Val mul(Val a, double b) { return scaled(a, b); }
  // x times a constant: a MUL for floats; for quantised types only the scale changes (factor > 0).
  Val scaled(Val x, double factor);
  Val maximum(Val a, Val b);
  Val minimum(Val a, Val b);
  Val select(Val condition, Val a, Val b);
  Val unary(Operator op, Val x);  // exp, log, floor, tanh, rsqrt, ...
  Val negate(Val x);
  // lowest/highest are real numbers; +-infinity leaves that side open. One tosa.clamp for i8/i16/floats,
  // MAXIMUM/MINIMUM for i32.
  Val clamp(Val x, double lowest, double highest);
  Val cast(Val x, DType to);  // PyTorch's semantics: float to int truncates, anything to bool is != 0
  // op: "reduce_sum", "reduce_max", ...; axes are kept as size 1 when keep.
  Val reduce(Operator op, Val x, const std::vector<int>& axes, bool keep);
  Val like(Val x, double value);  // a rank-0 constant of x's dtype; for a quantised x, of x's scales

  // ---- tensor operators, NHWC as TOSA wants them; pads are {top, bottom, left, right}, may not be negative
  // for conv2d. bias: rank 1, or nullopt for zeros. Weight: conv2d OHWI, depthwise HWCM, transpose OHWI.
  // Input sizes that a stride does not divide evenly are trimmed, as PyTorch does silently.
  Val conv2d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
             std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation);
  Val depthwise_conv2d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
                       std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation);
  Val conv3d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
             std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation);
  // out_pad may be negative: {top, bottom, left, right} added to the full output.
  Val transpose_conv2d(Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> out_pad,
                       std::vector<std::int64_t> stride);
  Val matmul(Val a, Val b);  // [N,H,C] x [N,C,W]
  Val max_pool2d(Val x, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                 std::vector<std::int64_t> pad);
  Val avg_pool2d(Val x, std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
                 std::vector<std::int64_t> pad);
  // mode "nearest" or "bilinear"; scale {y_n, y_d, x_n, x_d}, offset {y, x}, border {y, x} (spec RESIZE).
  Val resize(Val x, std::vector<std::int64_t> scale, std::vector<std::int64_t> offset, std::vector<std::int64_t> border,
             const std::string& mode);
  Val gather(Val values, Val indices);  // [N,K,C] by [N,W] i32 -> [N,W,C]

  // ---- quantised types
  // Changes quantised values to another dtype/scale/zero point with one RESCALE; no node when the types agree.
  Val rescale(Val x, TensorType to);
  // The same elements under another type of the same dtype and shape (other scales, or none).
  Val relabelled(Val x, TensorType type);
  // The integers of x as i32 with zero point 0 and the same scale (for `product`, comparisons, reductions).
  Val as_i32(Val x);
  // real = f(real), as one TABLE from x's quantised values to `to`'s. f maps a list of reals element by element.
  using Function = std::function<std::vector<double>(const std::vector<double>&)>;
  Val table(Val x, TensorType to, const Function& f);

 protected:
  bool folds() const { return fold_; }
  std::string fresh_name(std::string_view stem);

 private:
  friend class Val;
  Val clamp_quantised(Val x, IntegerRange limits);
  Val clamp_node(Val x, IntegerRange limits);  // CLAMP, whatever the bounds
  Val zero_point(Val x);                       // a [1] constant of x's dtype with its zero point
  Val convolution(Operator op, Val x, Val weight, std::optional<Val> bias, std::vector<std::int64_t> pad,
                  std::vector<std::int64_t> stride, std::vector<std::int64_t> dilation,
                  const std::vector<std::int64_t>& kernel, std::int64_t channels);
  Val bias_for(std::optional<Val> bias, const TensorType& x, const TensorType& weight, std::int64_t channels);
  Val accumulated(Val accumulator, const TensorType& x, const TensorType& weight);

  Val typed(Operator op, std::vector<Val> operands, Attrs attrs, DType result);
  Val unify(Operator op, Val a, Val b);    // operands share one scale, so does the result
  Val extreme(Operator op, Val a, Val b);  // maximum, minimum
  Val retyped(Val x, TensorType type);     // the same value under another type, without a node
  bool folded(const tosa::Op& op, Node& node, const TensorType& type, Bytes& result) const;

  Graph& graph_;
  const tosa::Spec* spec_ = nullptr;
  LocRef loc_;
  CallState call_;
  bool fold_ = true;
  std::uint64_t counter_ = 0;
};

inline const TensorType& Val::type() const { return builder_->graph_[id_].type; }
inline bool Val::is_constant() const { return builder_->graph_[id_].is_constant(); }

}  // namespace tosaic
