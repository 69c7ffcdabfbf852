// SPDX-License-Identifier: Apache-2.0
#include "normalise/pair_movement.h"

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"

#include <algorithm>
#include <numeric>
#include <string_view>

namespace tosaic::pairs {
namespace {

using Ints = std::vector<std::int64_t>;

// "view" of "aten.view_copy.default".
std::string_view name_of(Operator op) {
  std::string_view name = op.base();
  if (name.ends_with("_copy")) name.remove_suffix(5);
  return name;
}

class Call {
 public:
  Call(const Node& node, const Shape& pairs) : node_(node), pairs_(pairs), made_{node.op, {}} {
    for (const auto& [name, attr] : node.attrs)
      if (name != mark::complex_results.name && name != mark::argument_order.name) made_.attrs.set(name, attr);
  }

  std::optional<Moved> moved() {
    using namespace aten::op;
    if (is(select_int, slice_Tensor, narrow, split_Tensor, split_with_sizes, chunk, unbind_int, index_select, unsqueeze,
           squeeze, cat, concat, stack, unflatten_int, cumsum, slice_scatter, select_scatter))
      return along({"dim"});
    if (is(flatten_using_ints)) {
      if (!node_.attrs.find("end_dim")) made_.attrs.set("end_dim", std::int64_t{-1});
      return along({"start_dim", "end_dim"});
    }
    if (is(transpose_int)) return along({"dim0", "dim1"});
    if (is(movedim_int)) return along({"source", "destination"});
    if (is(flip)) return along({"dims"});
    if (is(roll)) return ints("dims").empty() ? std::nullopt : along({"dims"});
    if (is(t) && rank() == 2) return Moved{transpose_int, {{"dim0", std::int64_t{0}}, {"dim1", std::int64_t{1}}}};
    if (is(numpy_T)) {
      Ints dims(static_cast<std::size_t>(rank()));
      std::iota(dims.rbegin(), dims.rend(), 0);
      dims.push_back(rank());
      return Moved{aten::op::permute, {{"dims", std::move(dims)}}};
    }
    if (is(mT) && rank() > 1) return Moved{transpose_int, {{"dim0", std::int64_t{-3}}, {"dim1", std::int64_t{-2}}}};
    if (is(aten::op::permute)) {
      Ints dims = ints("dims");
      for (std::int64_t& d : dims) d += d < 0 ? rank() : 0;
      return with("dims", std::move(dims), rank());
    }
    if (is(view, _unsafe_view, expand)) return with("size", ints("size"), 2);
    if (is(reshape)) return with("shape", ints("shape"), 2);
    if (is(repeat)) return with("repeats", ints("repeats"), 1);
    if (is(aten::op::sum)) return summed(sum_dim_IntList);
    if (is(mean)) return summed(mean_dim);
    if (is(constant_pad_nd) || (is(pad) && constant_pad())) return padded();
    if (is(fft_fftshift)) return shifted(false);
    if (is(fft_ifftshift)) return shifted(true);
    return {};
  }

 private:
  // In whichever overload; copies of views, too.
  template <class... Operators>
  bool is(Operators... ops) const {
    return ((name_of(node_.op) == ops.base()) || ...);
  }

  std::int64_t rank() const { return pairs_.rank() - 1; }

  Ints ints(std::string_view name) const {
    const Attr* attr = node_.attrs.find(name);
    if (!attr) return {};
    if (const auto* one = std::get_if<std::int64_t>(attr)) return {*one};
    const auto* list = std::get_if<Ints>(attr);
    return list ? *list : Ints{};
  }

  // Dims that are counted from behind have the pairs' own after them.
  std::optional<Moved> along(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      const Attr* attr = made_.attrs.find(name);
      if (!attr) continue;
      Attr dims = *attr;
      if (auto* one = std::get_if<std::int64_t>(&dims)) *one -= *one < 0;
      if (auto* list = std::get_if<Ints>(&dims))
        for (std::int64_t& d : *list) d -= d < 0;
      made_.attrs.set(std::string(name), std::move(dims));
    }
    return made_;
  }

  std::optional<Moved> with(std::string name, Ints list, std::int64_t last) {
    if (list.empty() && rank() > 0) return {};  // not numbers
    list.push_back(last);
    made_.attrs.set(std::move(name), std::move(list));
    return made_;
  }

  Ints all_dims() const {
    Ints dims(static_cast<std::size_t>(rank()));
    std::iota(dims.begin(), dims.end(), 0);
    return dims;
  }

  std::optional<Moved> summed(Operator along_dims) {
    if (node_.attrs.find("dtype") && !std::holds_alternative<std::monostate>(*node_.attrs.find("dtype"))) return {};
    const Ints dims = ints("dim");
    made_.op = along_dims;
    made_.attrs.set("dim", dims.empty() ? all_dims() : dims);
    return along({"dim"});
  }

  bool constant_pad() const { return node_.attrs.get_or<std::string>("mode", "constant") == "constant"; }
  std::optional<Moved> padded() {
    const Attr* value = node_.attrs.find("value");
    const bool zero = !value || std::holds_alternative<std::monostate>(*value) || *value == Attr(std::int64_t{0}) ||
                      *value == Attr(0.0);
    Ints pad = ints("pad");
    if (!zero || pad.empty()) return {};
    pad.insert(pad.begin(), {0, 0});
    return Moved{aten::op::constant_pad_nd, {{"pad", std::move(pad)}, {"value", 0.0}}};
  }

  std::optional<Moved> shifted(bool back) {
    Ints dims = ints("dim"), shifts;
    if (dims.empty()) dims = all_dims();
    for (std::int64_t& d : dims) {
      d += d < 0 ? rank() : 0;
      if (d < 0 || d >= rank()) return {};
      shifts.push_back((pairs_.size(static_cast<int>(d)) + (back ? 1 : 0)) / 2);
    }
    return Moved{aten::op::roll, {{"shifts", std::move(shifts)}, {"dims", std::move(dims)}}};
  }

  const Node& node_;
  const Shape& pairs_;
  Moved made_;
};

}  // namespace

std::optional<Moved> moved(const Node& node, const Shape& pairs) {
  if (!node.op.is_aten()) return {};
  return Call(node, pairs).moved();
}

}  // namespace tosaic::pairs
