// SPDX-License-Identifier: Apache-2.0
// What check_shader knows of a module while it reads it: instructions one after the other, types, and which ids are
// values where it stands.
#pragma once
#include <fmt/format.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "formats/spirv/spirv.h"

namespace tosaic::spirv {

// Thrown inside check_shader only.
struct Wrong {
  std::string what;
};
[[noreturn]] inline void wrong(std::string what) { throw Wrong{std::move(what)}; }
inline void need(bool condition, const char* what) {
  if (!condition) wrong(what);
}

struct Instruction {
  Opcode opcode;
  std::span<const Word> operands;
};

// What a type is; `of` is the id of the element's, `size` bits, elements, a storage class or what a matrix is for.
struct Type {
  enum Kind : std::uint8_t {
    nothing,
    boolean_value,
    integer,
    real,
    vector,
    image,
    array,
    runtime_array,
    structure,
    pointer,
    function,
    matrix
  };
  Kind kind = nothing;
  Word size = 0;
  std::vector<Id> of = {};
};

class CheckedIds {
 protected:
  explicit CheckedIds(std::span<const Word> words) : words_(words) {}

  Instruction peek() const {
    need(at_ < words_.size(), "the module ends too early");
    const std::size_t length = words_[at_] >> 16;
    need(length > 0 && length <= words_.size() - at_, "an instruction reaches beyond the module");
    return {static_cast<Opcode>(words_[at_] & 0xffff), words_.subspan(at_ + 1, length - 1)};
  }
  Instruction next() {
    const Instruction i = peek();
    before_ = at_;
    at_ += i.operands.size() + 1;
    return i;
  }
  bool comes(Opcode opcode) const { return at_ < words_.size() && peek().opcode == opcode; }
  Instruction take(Opcode opcode, std::size_t operands) {
    const Instruction i = next();
    if (i.opcode != opcode)
      wrong(fmt::format("instruction {} where {} is expected", static_cast<int>(i.opcode), static_cast<int>(opcode)));
    need(i.operands.size() == operands, "an instruction of another length");
    return i;
  }

  // ---- ids
  void define(Id id, Id type) {
    need(id > 0 && id < bound_, "an id beyond the bound");
    need(used_.insert(id).second, "an id is defined twice");
    types_of_[id] = type;
    visible_.push_back(id);
  }
  Id type_of(Id id) const {
    const auto found = types_of_.find(id);
    need(found != types_of_.end() && found->second != 0, "an id is used that is no value here");
    return found->second;
  }
  const Type& type(Id id) const {
    const auto found = types_.find(id);
    need(found != types_.end(), "an id is no type");
    return found->second;
  }
  bool is(Id id, Type::Kind kind, Word size = 0) const {
    const auto found = types_.find(id);
    return found != types_.end() && found->second.kind == kind && (size == 0 || found->second.size == size);
  }
  bool is_word(Id t) const { return is(t, Type::integer, 32); }
  bool is_real(Id t) const { return is(t, Type::real, 32); }
  bool is_boolean(Id t) const { return is(t, Type::boolean_value); }
  // Of a number, or a vector of them; 0: it is something else.
  Word bytes_of(Id id) const {
    const auto found = types_.find(id);
    if (found == types_.end()) return 0;
    const Type& t = found->second;
    if (t.kind == Type::vector) return t.size == 3 ? 0 : t.size * bytes_of(t.of[0]);
    return t.kind == Type::integer || t.kind == Type::real ? t.size / 8 : 0;
  }
  // Is it this constant of 32 bits?
  bool is_constant(Id id, Word value) const {
    const auto found = constants_.find(id);
    return found != constants_.end() && found->second == value;
  }

  std::span<const Word> words_;
  std::size_t at_ = 0, before_ = 0;
  Word bound_ = 0;
  std::set<Id> used_;
  std::map<Id, Id> types_of_;  // of what is visible now; 0: no value
  std::vector<Id> visible_;    // in the order of their definitions
  std::map<Id, Type> types_;
  std::map<Id, Word> constants_;  // integers
};

}  // namespace tosaic::spirv
