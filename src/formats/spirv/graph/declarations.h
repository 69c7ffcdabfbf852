// SPDX-License-Identifier: Apache-2.0
// What a module of graphs declares before them: names, bindings, types and constants.
#pragma once
#include <fmt/format.h>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "formats/spirv/spirv.h"
#include "ir/type.h"

namespace tosaic::spirv {

class Declarations {
 protected:
  struct Type {
    enum class Kind : std::uint8_t { other, element, array, tensor, structure, pointer, graph } kind = Kind::other;
    DType dtype = DType::i32;  // element, tensor
    Shape shape;               // tensor
    std::vector<Id> members;   // structure; graph: inputs, then outputs; pointer and array: what it holds
    Word inputs = 0;           // graph
  };
  struct Constant {
    enum class Kind : std::uint8_t { scalar, composite, replicated, null, outside } kind = Kind::scalar;
    Id type = 0;
    std::uint64_t bits = 0;  // scalar; outside: its GraphConstantID
    std::vector<Id> parts;
  };
  struct Instruction {
    Opcode opcode;
    std::span<const Word> operands;
    std::size_t at;  // word in the module
  };

  template <class... T>
  static Diagnostic corrupt(std::size_t at, fmt::format_string<T...> text, T&&... values) {
    return error("spirv.corrupt", fmt::format("word {}: {}", at, fmt::format(text, std::forward<T>(values)...)));
  }

  // Instructions that declare nothing are passed over: capabilities, extensions, debug information.
  Status declare(const Instruction& i);

  // ---- operands
  static Status at_least(const Instruction& i, std::size_t count);
  // An id that the instruction defines.
  Result<Id> fresh(const Instruction& i, std::size_t k);
  Result<const Type*> type(const Instruction& i, std::size_t k, Type::Kind kind) const;
  Result<const Type*> type(std::size_t at, Id id, Type::Kind kind) const;
  static std::string text(std::span<const Word> words, std::size_t* used = nullptr);

  // ---- constants that operands are; `at`: where, for the message
  Result<const Constant*> constant(std::size_t at, Id id) const;
  // The elements, in storage form of `dtype`, appended to `data`; `count` of them.
  Status elements(std::size_t at, Id id, DType dtype, std::int64_t count, std::vector<std::byte>& data,
                  int depth = 0) const;
  // A list of 32-bit numbers: the composite of an array or of a rank-1 tensor.
  Result<std::vector<std::int64_t>> numbers(std::size_t at, Id id) const;
  Result<std::int64_t> number(std::size_t at, Id id) const;
  // An array of 8-bit integers.
  Result<std::string> byte_text(std::size_t at, Id id) const;

  Id bound_ = 0;
  std::map<Id, std::string> names_;
  std::map<Id, Word> bindings_;
  std::map<Id, Type> types_;
  std::map<Id, Constant> constants_;

 private:
  Status element(const Instruction& i, std::size_t count, DType dtype);
  Status integer_type(const Instruction& i);
  Status float_type(const Instruction& i);
  Status tensor_type(const Instruction& i);
  Status add_constant(const Instruction& i);

  std::map<Id, std::size_t> defined_;
};

}  // namespace tosaic::spirv
