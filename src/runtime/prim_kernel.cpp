// SPDX-License-Identifier: Apache-2.0
// Kernels that move memory or count: copies between tensors, sizes, and arithmetic on plain numbers.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "runtime/kernel.h"

namespace tosaic::runtime {
namespace {

// out = the elements of `from`, converted to its dtype.
class CopyKernel : public Kernel {
 public:
  CopyKernel(std::int32_t from, std::int32_t to) : from_(from), to_(to) {}
  Status run(Cells& cells) override {
    const TensorCell& from = cells[at(from_)].tensor;
    const TensorCell& to = cells[at(to_)].tensor;
    if (to.constant) return error("kernel.arguments", "a copy would write to a constant");
    const void* elements = dense(from, space_);
    if (from.type.dtype == to.type.dtype) {
      store_dense(to, elements);
    } else {
      const Bytes converted_elements = converted({from.type, elements}, to.type.dtype);
      store_dense(to, converted_elements.data());
    }
    return {};
  }
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<CopyKernel>(from_, to_));
  }

 private:
  std::int32_t from_, to_;
  std::vector<std::byte> space_;
};

// A number from numbers (or from a tensor's sizes).
class ScalarKernel : public Kernel {
 public:
  using Function = std::function<Result<pte::Value>(const Cells&)>;
  ScalarKernel(Function f, std::int32_t to) : f_(std::move(f)), to_(to) {}
  Status run(Cells& cells) override {
    TOSAIC_TRY(cells[at(to_)].value, f_(cells));
    return {};
  }
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<ScalarKernel>(f_, to_));
  }

 private:
  Function f_;
  std::int32_t to_;
};

// The kernels that copy their first tensor, and the number of their arguments: self, ..., out and perhaps out again.
bool is_copy(const std::string& name, std::size_t arguments) {
  if (name == "executorch_prim::et_view.default") return arguments == 3;
  if (name == "aten::view_copy.out") return arguments == 4;
  if (name == "aten::clone.out" || name == "aten::_to_copy.out")
    return arguments == (name == "aten::clone.out" ? 4u : 5u);
  if (name == "aten::detach_copy.out" || name == "aten::alias_copy.out" || name == "aten::lift_fresh_copy.out")
    return arguments == 3;
  if (name == "dim_order_ops::_to_dim_order_copy.out" || name == "dim_order_ops::_clone_dim_order.out")
    return arguments == 5;
  return false;
}

}  // namespace

std::string name_of(const pte::OperatorName& name) {
  return name.overload.empty() ? name.name : name.name + "." + name.overload;
}

bool copies(const pte::OperatorName& name) {
  const std::string full = name_of(name);
  for (std::size_t arguments = 3; arguments <= 5; ++arguments)
    if (is_copy(full, arguments)) return true;
  return false;
}
namespace {

// Integers where both are, else doubles; comparisons give booleans.
struct ScalarFunction {
  std::function<std::int64_t(std::int64_t, std::int64_t)> integer;
  std::function<double(double, double)> real;
  std::function<bool(double, double)> compare;
  bool divides = false;
};

std::int64_t wrapped(std::uint64_t v) { return static_cast<std::int64_t>(v); }
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == -1) return wrapped(0 - static_cast<std::uint64_t>(a));
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

const std::map<std::string, ScalarFunction>& scalar_functions() {
  using U = std::uint64_t;
  static const std::map<std::string, ScalarFunction> functions{
      {"add", {[](auto a, auto b) { return wrapped(U(a) + U(b)); }, [](double a, double b) { return a + b; }, {}}},
      {"sub", {[](auto a, auto b) { return wrapped(U(a) - U(b)); }, [](double a, double b) { return a - b; }, {}}},
      {"mul", {[](auto a, auto b) { return wrapped(U(a) * U(b)); }, [](double a, double b) { return a * b; }, {}}},
      {"floordiv", {floor_divide, [](double a, double b) { return std::floor(a / b); }, {}, true}},
      {"mod",
       {[](auto a, auto b) { return wrapped(U(a) - U(floor_divide(a, b)) * U(b)); },
        [](double a, double b) { return a - std::floor(a / b) * b; },
        {},
        true}},
      {"truediv", {{}, [](double a, double b) { return a / b; }, {}}},
      {"sym_max", {[](auto a, auto b) { return a > b ? a : b; }, [](double a, double b) { return a > b ? a : b; }, {}}},
      {"sym_min", {[](auto a, auto b) { return a < b ? a : b; }, [](double a, double b) { return a < b ? a : b; }, {}}},
      {"eq", {{}, {}, [](double a, double b) { return a == b; }}},
      {"gt", {{}, {}, [](double a, double b) { return a > b; }}},
      {"ge", {{}, {}, [](double a, double b) { return a >= b; }}},
      {"lt", {{}, {}, [](double a, double b) { return a < b; }}},
      {"le", {{}, {}, [](double a, double b) { return a <= b; }}},
  };
  return functions;
}

double as_double(const pte::Value& v) {
  if (const auto* i = std::get_if<std::int64_t>(&v)) return static_cast<double>(*i);
  if (const auto* b = std::get_if<bool>(&v)) return *b;
  return std::get<double>(v);
}
bool is_number(const pte::Value& v) {
  return std::holds_alternative<std::int64_t>(v) || std::holds_alternative<bool>(v) ||
         std::holds_alternative<double>(v);
}

pte::Value only_element(const TensorCell& cell) {
  const DType type = cell.type.dtype;
  if (is_float(type)) return element_as_double(type, cell.data, 0);
  const std::int64_t integer = element_as_integer(type, cell.data, 0);
  return type == DType::boolean ? pte::Value(integer != 0) : pte::Value(integer);
}

Result<pte::Value> apply(const ScalarFunction& f, const pte::Value& a, const pte::Value& b) {
  if (f.compare) return pte::Value(f.compare(as_double(a), as_double(b)));
  const auto *x = std::get_if<std::int64_t>(&a), *y = std::get_if<std::int64_t>(&b);
  if (x && y && f.integer) {
    if (f.divides && *y == 0) return error("run.division", "a size is divided by zero");
    return pte::Value(f.integer(*x, *y));
  }
  return pte::Value(f.real(as_double(a), as_double(b)));
}

}  // namespace

std::int32_t copied_to(const pte::OperatorName& name, const pte::KernelCall& call) {
  const std::size_t returned = name_of(name) == "executorch_prim::et_view.default" ? 0 : 1;  // it names its result once
  return call.args.size() > returned ? call.args[call.args.size() - 1 - returned] : -1;
}

Result<Shape> copied_shape(const pte::OperatorName& name, const pte::KernelCall& call, const Cells& cells) {
  const std::string full = name_of(name);
  const auto wrong = [&] { return error("kernel.arguments", full + " is called with the wrong arguments"); };
  const auto& args = call.args;
  if (args.size() < 3 || !cells[at(args[0])].is_tensor) return wrong();
  const Shape& from = cells[at(args[0])].tensor.type.shape;
  if (full != "executorch_prim::et_view.default" && full != "aten::view_copy.out") return from;
  const auto* list = std::get_if<pte::IntList>(&cells[at(args[1])].value);
  if (!list) return wrong();
  std::vector<std::int64_t> sizes;
  std::int64_t product = 1;
  for (std::int32_t item : list->items) {
    const auto* n = std::get_if<std::int64_t>(&cells[at(item)].value);
    if (!n || *n < -1) return wrong();
    sizes.push_back(*n);
    if (*n >= 0 && __builtin_mul_overflow(product, *n, &product)) return wrong();
  }
  const auto open = std::find(sizes.begin(), sizes.end(), -1);  // the one that follows from the others
  if (open != sizes.end()) *open = product == 0 ? 0 : from.elements() / product;
  if (std::find(sizes.begin(), sizes.end(), -1) != sizes.end() || Shape(sizes).elements() != from.elements())
    return wrong();
  return Shape(sizes);
}

std::int32_t written_number(const pte::OperatorName& name, const pte::KernelCall& call) {
  const bool number = name.name.starts_with("executorch_prim::") || name.name == "aten::sym_size" ||
                      name.name == "aten::sym_numel" || name.name == "aten::_local_scalar_dense";
  if (!number || call.args.empty() || name.name.starts_with("executorch_prim::et_")) return -1;
  return call.args.back();
}

Result<std::unique_ptr<Kernel>> make_prim_kernel(const pte::OperatorName& name, const pte::KernelCall& call,
                                                 const Cells& cells) {
  const std::string full = name_of(name);
  const auto& args = call.args;
  auto is_tensor = [&](std::size_t i) { return i < args.size() && cells[at(args[i])].is_tensor; };
  auto malformed = [&] {
    return error("kernel.arguments", fmt::format("{} is called with the wrong arguments", full));
  };
  const bool in_place = full == "aten::copy_";
  if (in_place || is_copy(full, args.size())) {
    if (!is_tensor(0) || (in_place && !is_tensor(1))) return malformed();
    const std::int32_t from = args[in_place ? 1 : 0], to = in_place ? args[0] : copied_to(name, call);
    if (!cells[at(to)].is_tensor || cells[at(to)].tensor.constant ||
        cells[at(from)].tensor.type.shape.elements() != cells[at(to)].tensor.type.shape.elements())
      return malformed();
    return std::unique_ptr<Kernel>(std::make_unique<CopyKernel>(from, to));
  }
  if (full == "aten::sym_size.int") {
    if (args.size() != 3 || !is_tensor(0) || !std::holds_alternative<std::int64_t>(cells[at(args[1])].value))
      return malformed();
    auto size = [tensor = args[0], dim = args[1]](const Cells& c) -> Result<pte::Value> {
      const Shape& shape = c[at(tensor)].tensor.type.shape;
      std::int64_t d = std::get<std::int64_t>(c[at(dim)].value);
      if (d < 0) d += shape.rank();
      if (d < 0 || d >= shape.rank())
        return error("kernel.arguments", "aten::sym_size.int asks for a dimension that is not there");
      return pte::Value(shape.size(static_cast<int>(d)));
    };
    return std::unique_ptr<Kernel>(std::make_unique<ScalarKernel>(size, args[2]));
  }
  if (name.name == "aten::sym_numel") {
    if (args.size() != 2 || !is_tensor(0)) return malformed();
    auto count = [tensor = args[0]](const Cells& c) -> Result<pte::Value> {
      return pte::Value(c[at(tensor)].tensor.type.shape.elements());
    };
    return std::unique_ptr<Kernel>(std::make_unique<ScalarKernel>(count, args[1]));
  }
  if (name.name == "aten::_local_scalar_dense") {
    if (args.size() != 2 || !is_tensor(0) || cells[at(args[0])].tensor.type.shape.elements() != 1) return malformed();
    return std::unique_ptr<Kernel>(std::make_unique<ScalarKernel>(
        [tensor = args[0]](const Cells& c) -> Result<pte::Value> { return only_element(c[at(tensor)].tensor); },
        args[1]));
  }
  if (name.name.starts_with("executorch_prim::")) {
    const auto& functions = scalar_functions();
    const auto f = functions.find(name.name.substr(17));
    if (f == functions.end()) return std::unique_ptr<Kernel>();
    if (args.size() != 3 || !is_number(cells[at(args[0])].value) || !is_number(cells[at(args[1])].value))
      return malformed();
    auto compute = [&function = f->second, a = args[0], b = args[1]](const Cells& c) {
      return apply(function, c[at(a)].value, c[at(b)].value);
    };
    return std::unique_ptr<Kernel>(std::make_unique<ScalarKernel>(compute, args[2]));
  }
  return std::unique_ptr<Kernel>();
}

}  // namespace tosaic::runtime
