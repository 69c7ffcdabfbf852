// SPDX-License-Identifier: Apache-2.0
#include "bind.h"

#include <nanobind/ndarray.h>
#include <variant>

namespace tosaic::python {
namespace {

DType dtype_of(nb::handle name) {
  const auto text = nb::cast<std::string>(name);
  const auto type = dtype_named(text);
  if (!type) throw nb::type_error(("tosaic has no dtype " + printable(text)).c_str());
  return *type;
}

// What DLPack calls the type. Types that it has no code for (or NumPy and older readers of DLPack have none for) travel
// as unsigned words of their size; the Python side knows the name and views them.
nb::dlpack::dtype dlpack_of(DType type) {
  const auto code = [](nb::dlpack::dtype_code c, unsigned bits) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(c), static_cast<std::uint8_t>(bits), 1};
  };
  using Code = nb::dlpack::dtype_code;
  switch (type) {
    case DType::boolean: return code(Code::Bool, 8);
    case DType::i4:
    case DType::i8: return code(Code::Int, 8);
    case DType::i16: return code(Code::Int, 16);
    case DType::i32: return code(Code::Int, 32);
    case DType::i48:
    case DType::i64:
    case DType::shape: return code(Code::Int, 64);
    case DType::f16: return code(Code::Float, 16);
    case DType::f32: return code(Code::Float, 32);
    case DType::f64: return code(Code::Float, 64);
    case DType::bf16: return code(Code::UInt, 16);
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f4e2m1:
    case DType::f6e2m3:
    case DType::f6e3m2:
    case DType::mxint8:
    case DType::f8ue8m0: return code(Code::UInt, 8);
  }
  return code(Code::UInt, 8);
}

std::vector<std::int64_t> integers(nb::handle sequence) {
  std::vector<std::int64_t> list;
  for (nb::handle item : sequence) list.push_back(nb::cast<std::int64_t>(item));
  return list;
}

}  // namespace

void raise(const Diagnostic& why) {
  const nb::object exception = nb::module_::import_("tosaic._errors").attr("Error")(nb::cast(why));
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

InputTensor lent(nb::handle described) {
  InputTensor tensor;
  tensor.data = reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(described[0]));
  tensor.dtype = dtype_of(described[1]);
  tensor.sizes = integers(described[2]);
  if (!nb::object(described[3]).is_none()) tensor.strides = integers(described[3]);
  return tensor;
}

std::vector<InputTensor> all_lent(nb::handle list) {
  std::vector<InputTensor> tensors;
  for (nb::handle item : list) tensors.push_back(lent(item));
  return tensors;
}

std::shared_ptr<const void> keep(nb::handle object) {
  object.inc_ref();
  return {object.ptr(), [](const void* p) {
            // After Python's end nobody needs the object any more.
            if (!Py_IsInitialized()) return;
            const nb::gil_scoped_acquire held;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(p)));
          }};
}

nb::object given(const OwnedTensor& tensor) {
  auto* content = new Bytes(tensor.data);
  const nb::capsule owner(content, [](void* p) noexcept { delete static_cast<Bytes*>(p); });
  std::vector<std::size_t> sizes(tensor.sizes.begin(), tensor.sizes.end());
  nb::ndarray<nb::array_api> array(const_cast<std::byte*>(content->data()), sizes.size(), sizes.data(), owner, nullptr,
                                   dlpack_of(tensor.dtype));
  return nb::cast(array);
}

nb::object given(const Literal& literal) {
  return std::visit(
      [](const auto& value) -> nb::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) {
          return nb::none();
        } else {
          return nb::cast(value);
        }
      },
      literal);
}

nb::object given(const Output& output) {
  if (!output.tensor) return given(output.literal);
  return nb::make_tuple(given(*output.tensor), std::string(name_of(output.tensor->dtype)));
}

nb::bytes bytes_of(const Bytes& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

Options options_of(const nb::dict& given) {
  Options options;
  for (auto [name, values] : given)
    options.set(nb::cast<std::string>(name), nb::cast<std::vector<std::string>>(values));
  return options;
}

}  // namespace tosaic::python

NB_MODULE(_core, m) {
  using namespace tosaic::python;
  m.doc() = "libtosaic for Python: what the package tosaic is made of. Private: names may change.";
  // What others keep to the end of the process (pytest keeps warnings) is no leak; test_run.py counts objects instead.
  nb::set_leak_warnings(false);
  bind_descriptions(m);
  bind_program(m);
  bind_compile(m);
  bind_session(m);
  bind_evaluate(m);
  bind_sweep(m);
  bind_bundle(m);
  bind_tosa(m);
  m.def(
      "version", [] { return tosaic::version(); }, "The library's version, \"0.1.0\".");
}
