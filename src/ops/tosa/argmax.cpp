// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/reduce.h"

namespace tosaic::tosa {
namespace {
std::vector<TensorType> infer(const View& view) {
  const Shape& in = view.in(0).shape;
  const int axis = static_cast<int>(view.integer("axis"));
  Shape shape(std::vector<std::int64_t>(static_cast<std::size_t>(in.rank() - 1)));
  for (int i = 0; i < shape.rank(); ++i) shape.set(i, in[i < axis ? i : i + 1]);
  // i32, or i64 as the node declares.
  const bool wide = !view.node().outputs.empty() && view.out().dtype == DType::i64;
  return {TensorType{wide ? DType::i64 : DType::i32, std::move(shape), std::nullopt}};
}

// TOSA 1.1 takes more types, and gives i64.
TypeRows types() {
  using enum DType;
  const TypeRows narrow =
      with(integers("in", {i8}) + rows({Feature::int16}, "in", {i16}) + floats("in") + fp8s("in"), "out", i32);
  const TypeRows wide = rows({Feature::int64}, "in", {i8, i16, i32, i64, f16, f32});
  TypeRows extended = rows({Feature::bf16}, "in", {bf16}) + fp8s("in");
  for (TypeRow& row : extended) row.and_needs = Feature::int64;
  return narrow + with(wide + extended, "out", i64);
}

// The first of equal maxima wins; the first NaN, unless NaN is ignored.
template <class T>
std::int64_t index_of_largest(const T* x, const AxisView& view, bool ignore) {
  Wide<T> best = static_cast<Wide<T>>(x[0]);
  std::int64_t index = 0;
  for (std::int64_t i = 1; i < view.size; ++i) {
    const Wide<T> value = static_cast<Wide<T>>(x[i * view.inner]);
    const Wide<T> largest = larger(best, value, ignore);
    // NaN differs from itself: it takes over from a number once, and is then replaced by a number only if ignored.
    const bool same = largest == best || (largest != largest && best != best);
    if (!same) best = largest, index = i;
  }
  return index;
}

Status eval(const Run& run) {
  const AxisView view = along(run.in[0].type.shape, run.view.integer("axis"));
  const DType type = run.out[0].type.dtype;
  if (view.size > INT32_MAX && type != DType::i64)
    return unpredictable(run, fmt::format("an index below {} need not fit i32", view.size));
  const bool ignore = ignores_nan(run.view);
  std::size_t n = 0;
  with_storage(run.in[0].type.dtype, [&]<class T>() {
    const T* in = static_cast<const T*>(run.in[0].data);
    for (std::int64_t l = 0; l < view.outer; ++l)
      for (std::int64_t r = 0; r < view.inner; ++r)
        store_integer(type, run.out[0].data, n++, index_of_largest(in + l * view.size * view.inner + r, view, ignore));
  });
  return {};
}
}  // namespace

Op tosa_argmax() {
  return {.name = "argmax",
          .schema_number = 1,
          .spirv_number = 0,
          .summary = "the index of the largest element along an axis",
          .inputs = {{"input", "in", 1}},
          .attrs = {{"axis", AttrKind::i32}, {"nan_mode", AttrKind::nan_mode}},
          .outputs = {{"output", "out"}},
          .types = types(),
          .infer = infer,
          .check = check_axis,
          .eval = eval,
          .bounds = bounds::index,

          // PyTorch's indices are int64.
          .in_core_aten = [](const View& node, CoreAten& calls) {
            const ValueId index =
                calls.made(aten::op::argmax, {calls.operand(0)}, {{"dim", node.integer("axis")}, {"keepdim", false}},
                           node.out().with(DType::i64));
            return calls.gives(aten::op::_to_copy, {index}, {{"dtype", node.out().dtype}});
          }};
}
}  // namespace tosaic::tosa
