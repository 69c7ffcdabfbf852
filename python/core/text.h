// SPDX-License-Identifier: Apache-2.0
// Text between C++ and Python. Python's is Unicode; names in files and of files are bytes that need not be UTF-8.
#pragma once
#include <nanobind/nanobind.h>

#include <string>

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

// In place of nanobind/stl/string.h, which raises UnicodeDecodeError.
template <>
struct type_caster<std::string> {
  NB_TYPE_CASTER(std::string, const_name("str"))

  bool from_python(handle source, std::uint8_t, cleanup_list*) noexcept {
    if (!PyUnicode_Check(source.ptr())) return false;
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(source.ptr(), &size)) {
      value.assign(text, static_cast<std::size_t>(size));
      return true;
    }
    PyErr_Clear();
    // How os.fsdecode says a file's name that is no UTF-8.
    PyObject* bytes = PyUnicode_AsEncodedString(source.ptr(), "utf-8", "surrogateescape");
    char* text = nullptr;
    const bool done = bytes && PyBytes_AsStringAndSize(bytes, &text, &size) == 0;
    if (done) value.assign(text, static_cast<std::size_t>(size));
    Py_XDECREF(bytes);
    if (!done) PyErr_Clear();
    return done;
  }

  static handle from_cpp(const std::string& text, rv_policy, cleanup_list*) noexcept {
    return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");  // as printable
  }
};

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
