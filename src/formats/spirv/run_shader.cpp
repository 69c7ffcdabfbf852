// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/run_shader.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/narrow_float.h"

namespace tosaic::spirv {
namespace {

constexpr Word constant_storage = 0, input_storage = 1, shared_storage = 4, function_storage = 7, push_storage = 9,
               buffer_storage = 12;
constexpr Word group_number = 26, local_invocation = 27, global_invocation = 28,
               subgroup_number = 40;  // what an input is
// A matrix of 16 x 16: each invocation of a subgroup has eight elements of half a row.
constexpr Word side = 16, sharers = 32, shares = side * side / sharers;
constexpr Word push_words = 32, subgroup_size = 8, decoration_built_in = 11;
// Of shared memory before anything is written there: no number that a device would have by accident.
constexpr Word unwritten = 0x5ca1ab1e;

}  // namespace

// Ids become registers, labels places in the list of steps; merges, which only tell how blocks nest, go.
class ShaderDecoder {
 public:
  explicit ShaderDecoder(std::span<const Word> words) : words_(words), registers_(words[3], 0) {
    program_.first_.assign(1, 0);
    program_.pushes_at_ = take(push_words);
    program_.invocation_at_ = take(3);
    program_.local_at_ = take(3);
    program_.group_at_ = take(3);
    program_.subgroup_at_ = take(1);
  }

  std::optional<ShaderProgram> decode() {
    for (std::size_t at = 5; at < words_.size(); at += words_[at] >> 16)
      if (!instruction(static_cast<Opcode>(words_[at] & 0xffff), words_.subspan(at + 1, (words_[at] >> 16) - 1)))
        return std::nullopt;
    for (auto& step : program_.steps_) {
      if (step.op == Opcode::branch) step.a = labels_[step.a];
      if (step.op == Opcode::branch_conditional) step.b = labels_[step.b], step.c = labels_[step.c];
    }
    // What products of matrices read by four words are eight halves each: as integers they might be no numbers.
    for (ShaderProgram::Binding& b : program_.bindings_)
      if (program_.multiplies_ && b.element_bytes == 4 && !b.real && b.lanes == 4) b = {2, false, 8};
    return std::move(program_);
  }

 private:
  struct Type {
    Opcode kind{};
    Word bits = 0, words = 1;  // bits: of an array its elements
    Id of = 0;                 // what a pointer, an array or a block holds
  };
  struct Pointer {
    // base: a binding, the register of a variable, or where shared memory begins; index: a register.
    Word storage = 0, base = 0, index = 0;
    Word stride = 1;  // of shared memory, in words
  };
  using Operands = std::span<const Word>;

  Word take(Word words) {
    const auto at = static_cast<Word>(program_.first_.size());
    program_.first_.resize(at + words, 0);
    return at;
  }
  Word at(Id id) const { return registers_[id]; }
  // The register of a result.
  Word result(Id id, Id type) {
    typed_[id] = type;
    return registers_[id] = take(types_[type].words);
  }
  void add(Opcode op, Word function, Word to, Word a = 0, Word b = 0, Word c = 0) {
    program_.steps_.push_back({op, function, to, a, b, c});
  }

  bool instruction(Opcode op, Operands o) {
    switch (op) {
      case Opcode::capability:
      case Opcode::extension:
      case Opcode::ext_inst_import:
      case Opcode::memory_model:
      case Opcode::entry_point:
      case Opcode::member_decorate:
      case Opcode::type_function:
      case Opcode::function:
      case Opcode::loop_merge:
      case Opcode::selection_merge:
      case Opcode::function_end: return true;
      case Opcode::execution_mode: program_.group_size_ = o[2]; return true;
      case Opcode::decorate:
        if (o[1] == decoration_binding) bindings_[o[0]] = o[2];
        if (o[1] == decoration_built_in) built_in_[o[0]] = o[2];
        return true;
      case Opcode::type_void:
      case Opcode::type_bool: types_[o[0]] = {op, 32}; return true;
      case Opcode::type_int:
      case Opcode::type_float: types_[o[0]] = {op, o[1]}; return o[1] <= 32;
      case Opcode::type_cooperative_matrix: types_[o[0]] = {op, types_[o[1]].bits, shares, o[1]}; return true;
      case Opcode::type_image: types_[o[0]] = {op, 32, 1, o[1]}; return true;
      case Opcode::type_vector: types_[o[0]] = {op, 32, o[2], o[1]}; return true;
      case Opcode::type_array: types_[o[0]] = {op, program_.first_[at(o[2])], 1, o[1]}; return true;
      case Opcode::type_runtime_array: types_[o[0]] = {op, 32, 1, o[1]}; return true;
      case Opcode::type_struct: types_[o[0]] = {op, 32, static_cast<Word>(o.size() - 1), o[1]}; return true;
      case Opcode::type_pointer: types_[o[0]] = {op, 32, 1, o[2]}; return true;
      case Opcode::constant_true:
      case Opcode::constant_false: program_.first_[result(o[1], o[0])] = op == Opcode::constant_true; return true;
      case Opcode::constant: program_.first_[result(o[1], o[0])] = o[2]; return o.size() == 3;
      case Opcode::variable: return variable(o);
      case Opcode::label: labels_[o[0]] = static_cast<Word>(program_.steps_.size()); return true;
      case Opcode::branch: add(op, 0, 0, o[0]); return true;
      case Opcode::branch_conditional: add(op, 0, 0, at(o[0]), o[1], o[2]); return true;
      case Opcode::return_: add(op, 0, 0); return true;
      case Opcode::access_chain: return access(o);
      case Opcode::load: return load(o);
      case Opcode::store: return store(o);
      case Opcode::image_fetch: return fetch(o);
      case Opcode::cooperative_matrix_load: return matrix(op, o[2], result(o[1], o[0]), o[0], o[3], o[4]);
      case Opcode::cooperative_matrix_store: return matrix(op, o[0], at(o[1]), typed_[o[1]], o[2], o[3]);
      case Opcode::cooperative_matrix_mul_add:
        program_.multiplies_ = program_.rounds_ = true;
        add(op, 0, result(o[1], o[0]), at(o[2]), at(o[3]), at(o[4]));
        return true;
      case Opcode::composite_construct: return construct(o);
      case Opcode::control_barrier:
        program_.waits_ = true;
        add(op, 0, 0);
        return true;
      default: return arithmetic(op, o);
    }
  }

  bool variable(Operands o) {
    const Id held = types_[o[0]].of;
    switch (o[2]) {
      case input_storage: return input(o[1]);
      case shared_storage:
        pointers_[o[1]] = {o[2], program_.shared_words_, 0, types_[types_[held].of].words};
        program_.shared_words_ += types_[held].bits * types_[types_[held].of].words;
        return true;
      case function_storage: pointers_[o[1]] = {o[2], take(types_[held].words), 0}; return true;
      case push_storage: pointers_[o[1]] = {o[2], program_.pushes_at_, 0}; return true;
      case constant_storage: bind(o, types_[types_[held].of]); return true;
      case buffer_storage: bind(o, types_[types_[types_[held].of].of]); return true;
      default: return false;
    }
  }

  bool input(Id id) {
    switch (built_in_[id]) {
      case global_invocation: pointers_[id] = {input_storage, program_.invocation_at_, 0}; return true;
      case local_invocation: pointers_[id] = {input_storage, program_.local_at_, 0}; return true;
      case group_number: pointers_[id] = {input_storage, program_.group_at_, 0}; return true;
      case subgroup_number: pointers_[id] = {input_storage, program_.subgroup_at_, 0}; return true;
      default: return false;
    }
  }

  void bind(Operands o, const Type& element) {
    const Word binding = bindings_[o[1]];
    pointers_[o[1]] = {o[2], binding, 0};
    const bool vector = element.kind == Opcode::type_vector;
    const Type& number = vector ? types_[element.of] : element;
    auto& list = program_.bindings_;
    list.resize(std::max<std::size_t>(list.size(), binding + 1));
    list[binding] = {number.bits / 8, number.kind == Opcode::type_float, vector ? element.words : 1};
    if (vector && element.words == 2) list[binding] = {2, false, 4};  // pairs of words hold halves
  }

  // Of a block's only array.
  bool access(Operands o) {
    if (o.size() < 4 || !pointers_.contains(o[2])) return false;
    Pointer p = pointers_[o[2]];
    if (p.storage == shared_storage) {  // an element, or a part of it
      const Word place = take(1);
      program_.steps_.push_back({Opcode::access_chain, p.base, place, at(o[3]), o.size() > 4 ? at(o[4]) : 0, p.stride});
      pointers_[o[1]] = {shared_storage, 0, place};
      return true;
    }
    if (o.size() != 5) return false;
    if (p.storage == push_storage)
      p.base += program_.first_[at(o[4])];  // a constant
    else
      p.index = at(o[4]);
    pointers_[o[1]] = p;
    return p.storage == push_storage || p.storage == buffer_storage;
  }

  bool load(Operands o) {
    const auto found = pointers_.find(o[2]);
    if (found == pointers_.end()) return false;
    const Pointer& p = found->second;
    if (p.storage == constant_storage) {
      images_[o[1]] = p.base;
      return true;
    }
    const Word to = result(o[1], o[0]);
    if (p.storage == buffer_storage)
      add(Opcode::load, buffer_storage, to, p.base, p.index);
    else if (p.storage == shared_storage)
      add(Opcode::load, shared_storage, to, p.index, types_[o[0]].words);
    else
      add(Opcode::load, 0, to, p.base, types_[o[0]].words);
    return true;
  }
  bool store(Operands o) {
    const auto found = pointers_.find(o[0]);
    if (found == pointers_.end()) return false;
    const Pointer& p = found->second;
    if (p.storage == buffer_storage)
      add(Opcode::store, buffer_storage, p.base, at(o[1]), p.index);
    else if (p.storage == shared_storage)
      add(Opcode::store, shared_storage, p.index, at(o[1]), types_[typed_[o[1]]].words);
    else
      add(Opcode::load, 0, p.base, at(o[1]), types_[typed_[o[1]]].words);
    return true;
  }

  bool fetch(Operands o) {
    const auto image = images_.find(o[2]);
    if (image == images_.end()) return false;
    add(Opcode::image_fetch, 0, result(o[1], o[0]), image->second, at(o[3]));
    return true;
  }
  // What is read or written, and where: of an element of shared memory, whose stride is that of rows, too.
  bool matrix(Opcode op, Id pointer, Word elements, Id type, Id layout, Id stride) {
    const auto found = pointers_.find(pointer);
    if (found == pointers_.end() || found->second.storage != shared_storage) return false;
    add(op, program_.first_[at(layout)], elements, found->second.index, program_.first_[at(stride)] * 4,
        types_[type].bits);
    return true;
  }
  bool construct(Operands o) {
    const Word to = result(o[1], o[0]);
    if (types_[o[0]].kind == Opcode::type_cooperative_matrix) {
      for (Word i = 0; i < shares; ++i) add(Opcode::load, 0, to + i, at(o[2]), 1);
      return true;
    }
    for (Word i = 2; i < o.size(); ++i) add(Opcode::load, 0, to + i - 2, at(o[i]), 1);
    return true;
  }

  bool arithmetic(Opcode op, Operands o) {
    if (o.size() < 3) return false;
    if (op == Opcode::group_non_uniform_shuffle) {
      program_.shuffles_ = true;
      add(op, 0, result(o[1], o[0]), at(o[3]), at(o[4]));
      return true;
    }
    const Opcode kind = types_[o[0]].kind;
    if (op != Opcode::ext_inst && (kind == Opcode::type_vector || kind == Opcode::type_cooperative_matrix))
      return parts(op, o);
    const Word to = result(o[1], o[0]);
    const auto operand = [&](std::size_t i) { return i < o.size() ? at(o[i]) : 0; };
    switch (op) {
      case Opcode::ext_inst:
        if (!is_known_function(o[3])) return false;
        program_.rounds_ |= o[3] == 29 || o[3] == 31 || o[3] == 32 || o[3] == 50 || o[3] == 58 || o[3] == 62;
        add(op, o[3], to, operand(4), operand(5), operand(6));
        return true;
      case Opcode::composite_extract: add(Opcode::load, 0, to, at(o[2]) + o[3], 1); return o.size() == 4;
      case Opcode::u_convert:
      case Opcode::s_convert: {
        const Word from = types_[typed_[o[2]]].bits, into = types_[o[0]].bits;
        add(op, std::min(from, into), to, operand(2));  // the bits that count
        return true;
      }
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul:
      case Opcode::f_div: program_.rounds_ = true; break;
      default: break;
    }
    if (!is_known(op)) return false;
    add(op, 0, to, operand(2), operand(3), operand(4));
    return true;
  }

  // Of vectors and matrices, part by part.
  bool parts(Opcode op, Operands o) {
    const bool scaled = op == Opcode::vector_times_scalar;
    const bool rounds = scaled || op == Opcode::f_add || op == Opcode::f_sub || op == Opcode::f_mul;
    if (!rounds && op != Opcode::i_add && op != Opcode::i_sub && op != Opcode::i_mul) return false;
    program_.rounds_ |= rounds;
    const Word to = result(o[1], o[0]);
    for (Word i = 0; i < types_[o[0]].words; ++i)
      add(scaled ? Opcode::f_mul : op, 0, to + i, at(o[2]) + i, at(o[3]) + (scaled ? 0 : i));
    return true;
  }

  static bool is_known_function(Word f) {
    for (const Word known : {2, 3, 4, 8, 9, 29, 31, 32, 38, 39, 42, 50, 58, 62, 75})
      if (f == known) return true;
    return false;
  }
  static bool is_known(Opcode op) {
    switch (op) {
      case Opcode::bitcast:
      case Opcode::convert_f_to_s:
      case Opcode::convert_s_to_f:
      case Opcode::convert_u_to_f:
      case Opcode::s_negate:
      case Opcode::bit_not:
      case Opcode::f_negate:
      case Opcode::logical_not:
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul:
      case Opcode::f_div:
      case Opcode::i_add:
      case Opcode::i_sub:
      case Opcode::i_mul:
      case Opcode::u_div:
      case Opcode::s_div:
      case Opcode::u_mod:
      case Opcode::u_mul_extended:
      case Opcode::s_mul_extended:
      case Opcode::s_dot:
      case Opcode::select:
      case Opcode::logical_equal:
      case Opcode::logical_not_equal:
      case Opcode::logical_or:
      case Opcode::logical_and:
      case Opcode::i_equal:
      case Opcode::i_not_equal:
      case Opcode::s_greater_than:
      case Opcode::s_greater_than_equal:
      case Opcode::u_less_than:
      case Opcode::s_less_than:
      case Opcode::s_less_than_equal:
      case Opcode::f_ord_equal:
      case Opcode::f_ord_less_than:
      case Opcode::f_ord_greater_than:
      case Opcode::f_ord_less_than_equal:
      case Opcode::f_ord_greater_than_equal:
      case Opcode::shift_right_logical:
      case Opcode::shift_right_arithmetic:
      case Opcode::shift_left_logical:
      case Opcode::bitwise_or:
      case Opcode::bitwise_xor:
      case Opcode::bitwise_and: return true;
      default: return false;
    }
  }

  std::span<const Word> words_;
  ShaderProgram program_;
  std::vector<Word> registers_;  // by id
  std::map<Id, Id> typed_;
  std::map<Id, Type> types_;
  std::map<Id, Pointer> pointers_;
  std::map<Id, Word> bindings_, labels_, images_, built_in_;
};

std::optional<ShaderProgram> ShaderProgram::decode(std::span<const Word> words) {
  return ShaderDecoder(words).decode();
}

class ShaderRunner {
 public:
  using Step = ShaderProgram::Step;
  ShaderRunner(const ShaderProgram& program, const ShaderCall& call, const ShaderProgram::Run& run,
               std::vector<Word>& shared, std::uint64_t& left)
      : program_(program), call_(call), run_(run), shared_(shared), left_(left), r_(program.first_) {
    for (std::size_t i = 0; i < std::min<std::size_t>(call.pushes.size(), push_words); ++i)
      r_[program.pushes_at_ + i] = call.pushes[i];
    r_[program.invocation_at_] = run.group[0] * program.group_size_ + run.local;
    r_[program.invocation_at_ + 1] = run.group[1];
    r_[program.invocation_at_ + 2] = run.group[2];
    r_[program.local_at_] = run.local;
    for (Word i = 0; i < 3; ++i) r_[program.group_at_ + i] = run.group[i];
    r_[program.subgroup_at_] = run.local / sharers;
  }

  enum class State : std::uint8_t { returned, shuffles, multiplies, waits, undefined };

  // Up to its end, to a shuffle or to a barrier.
  State advance() {
    for (;; ++done_) {
      if (left_ == 0) undefined_ = true;
      if (undefined_) return State::undefined;
      --left_;
      const Step& s = program_.steps_[next_++];
      if (s.op == Opcode::branch)
        next_ = s.a;
      else if (s.op == Opcode::branch_conditional)
        next_ = r_[s.a] ? s.b : s.c;
      else if (s.op == Opcode::return_)
        return State::returned;
      else if (s.op == Opcode::group_non_uniform_shuffle)
        return State::shuffles;
      else if (s.op == Opcode::cooperative_matrix_mul_add)
        return State::multiplies;
      else if (s.op == Opcode::control_barrier)
        return State::waits;
      else
        step(s);
    }
  }

  // At a shuffle: what it gives the others, whose it takes, and what it then has.
  std::size_t place() const { return next_; }
  Word given() const { return r_[program_.steps_[next_ - 1].a]; }
  Word wanted() const { return r_[program_.steps_[next_ - 1].b]; }
  void take(Word value) { r_[program_.steps_[next_ - 1].to] = value; }

  // At a product of matrices: its elements of the factors and of the sum.
  float left(Word i) const { return real(program_.steps_[next_ - 1].a + i); }
  float right(Word i) const { return real(program_.steps_[next_ - 1].b + i); }
  float sum(Word i) const { return real(program_.steps_[next_ - 1].c + i); }
  // What the sum becomes: devices add in an order and a precision of their own; `size`: of the terms together.
  void take_sum(Word i, double value, double size) {
    if (run_.noise) value += (static_cast<double>((*run_.noise)() % 2001) / 1000 - 1) * size * 0x1p-22;
    set(program_.steps_[next_ - 1].to + i, static_cast<float>(value));
    done_ += i == 0 ? side : 0;
  }

  std::vector<ShaderWrite>& writes() { return writes_; }
  std::uint64_t done() const { return done_; }

 private:
  static constexpr int by_an_ulp = 1, division_ulps = 3, root_ulps = 3;
  static int power_ulps(float x) { return 3 + 2 * static_cast<int>(std::min(std::fabs(x), 150.0f)); }

  float real(Word at) const { return std::bit_cast<float>(r_[at]); }
  std::int32_t whole(Word at) const { return static_cast<std::int32_t>(r_[at]); }
  void set(Word at, float value) { r_[at] = std::bit_cast<Word>(value); }
  void set_rounded(Word at, float value, int ulps) {
    Word bits = std::bit_cast<Word>(value);
    const Word size = bits & 0x7fffffff;
    if (run_.noise && size > 0x00800010 && size < 0x7f7ffff0)
      bits += static_cast<Word>(static_cast<int>((*run_.noise)() % static_cast<Word>(2 * ulps + 1))) -
              static_cast<Word>(ulps);
    r_[at] = bits;
  }

  // The element's bytes; null: it lies outside.
  std::byte* element(Word binding, std::uint64_t index, Word& bytes) {
    bytes = program_.bindings_[binding].element_bytes;
    const auto& memory = call_.bindings[binding];
    const std::uint64_t at = index * bytes;
    undefined_ |= at + bytes > memory.size();
    return undefined_ ? nullptr : memory.data() + at;
  }
  // The first of so many words of shared memory; 0 where they lie outside.
  Word shared_place(Word at, Word words) {
    undefined_ |= at >= shared_.size() || words > shared_.size() - at;
    return undefined_ ? 0 : at;
  }
  // Four elements in two words.
  bool is_of_halves(Word binding) const {
    return program_.bindings_[binding].element_bytes == 2 && program_.bindings_[binding].lanes >= 4;
  }
  void load(const Step& s) {
    const Word lanes = program_.bindings_[s.a].lanes, at = r_[s.b];
    const bool halves = is_of_halves(s.a);
    for (Word i = 0; i < lanes; ++i) {
      Word bytes = 0, value = 0;
      if (const std::byte* from = element(s.a, std::uint64_t{at} * lanes + i, bytes)) std::memcpy(&value, from, bytes);
      if (!halves)
        r_[s.to + i] = value;
      else
        r_[s.to + i / 2] = i % 2 ? r_[s.to + i / 2] | value << 16 : value;
    }
  }
  void store(const Step& s) {
    const Word lanes = program_.bindings_[s.to].lanes;
    for (Word i = 0; i < lanes; ++i) {
      ShaderWrite w{s.to, 4, std::uint64_t{r_[s.b]} * lanes + i};
      std::byte* const to = element(s.to, w.index, w.element_bytes);
      if (!to) return;
      std::memcpy(&w.before, to, w.element_bytes);
      const Word value = is_of_halves(s.to) ? r_[s.a + i / 2] >> 16 * (i % 2) : r_[s.a + i];
      std::memcpy(to, &value, w.element_bytes);
      std::memcpy(&w.after, to, w.element_bytes);
      writes_.push_back(w);
    }
  }
  // Components that the format lacks are 0, 0, 1. What lies outside is the device's.
  void fetch(const Step& s) {
    const Word texel = call_.texel_bytes[s.a], bytes = std::min<Word>(texel, 4);
    const auto& memory = call_.bindings[s.a];
    const std::uint64_t at = std::uint64_t{r_[s.b]} * texel;
    undefined_ |= at + texel > memory.size();
    if (undefined_) return;
    for (Word i = 0; i < 4; ++i) {
      Word value = i < 3 ? 0 : program_.bindings_[s.a].real ? 0x3f800000 : 1;
      if (i * bytes < texel) std::memcpy(&(value = 0), memory.data() + at + i * bytes, bytes);
      r_[s.to + i] = value;
    }
  }

  // This invocation's part of a matrix in shared memory.
  void share_matrix(const Step& s, bool stores) {
    const Word halves = s.c == 16 ? 2 : 1, first = run_.local % sharers * shares;
    for (Word i = 0; i < shares; ++i) {
      Word row = (first + i) / side, column = (first + i) % side;
      if (s.function == matrix_by_columns) std::swap(row, column);
      const Word place = shared_place(r_[s.a] + row * s.b + column / halves, 1);
      if (undefined_) return;
      if (stores)
        shared_[place] = r_[s.to + i];
      else if (halves == 1)
        r_[s.to + i] = shared_[place];
      else
        set(s.to + i, half(shared_[place] >> 16 * (column % 2)));
    }
  }

  void convert(const Step& s) {
    const Word unused = 32 - s.function;
    const Word high = r_[s.a] << unused;
    r_[s.to] =
        s.op == Opcode::u_convert ? high >> unused : static_cast<Word>(static_cast<std::int32_t>(high) >> unused);
  }
  Word shifted(const Step& s) {
    const Word a = r_[s.a], by = r_[s.b];
    if (by > 31) {
      undefined_ = true;
      return 0;
    }
    return s.op == Opcode::shift_left_logical    ? a << by
           : s.op == Opcode::shift_right_logical ? a >> by
                                                 : static_cast<Word>(static_cast<std::int32_t>(a) >> by);
  }
  Word quotient(const Step& s) {
    const Word a = r_[s.a], b = r_[s.b];
    if (b == 0 || (s.op == Opcode::s_div && a == 0x80000000 && b == 0xffffffff)) {
      undefined_ = true;
      return 0;
    }
    return s.op == Opcode::u_div   ? a / b
           : s.op == Opcode::u_mod ? a % b
                                   : static_cast<Word>(static_cast<std::int32_t>(a) / static_cast<std::int32_t>(b));
  }
  Word to_whole(float x) {
    if (!(x >= -2147483648.0f && x < 2147483648.0f)) {
      undefined_ = true;
      return 0;
    }
    return static_cast<Word>(static_cast<std::int32_t>(x));
  }
  void from_whole(const Step& s) {
    const double exact =
        s.op == Opcode::convert_s_to_f ? static_cast<double>(whole(s.a)) : static_cast<double>(r_[s.a]);
    const auto value = static_cast<float>(exact);
    set_rounded(s.to, value, static_cast<double>(value) == exact ? 0 : by_an_ulp);
  }
  static Word dot_of_codes(Word a, Word b) {
    std::int32_t sum = 0;
    for (Word shift = 0; shift < 32; shift += 8)
      sum += std::int32_t{static_cast<std::int8_t>(a >> shift)} * static_cast<std::int8_t>(b >> shift);
    return static_cast<Word>(sum);
  }
  void product(const Step& s) {
    const auto a = r_[s.a], b = r_[s.b];
    const auto all = s.op == Opcode::u_mul_extended
                         ? std::uint64_t{a} * b
                         : static_cast<std::uint64_t>(std::int64_t{whole(s.a)} * std::int64_t{whole(s.b)});
    r_[s.to] = static_cast<Word>(all);
    r_[s.to + 1] = static_cast<Word>(all >> 32);
  }
  // A device may take f16 numbers that are not normal as zero.
  float half(Word bits) {
    const auto code = static_cast<std::uint16_t>(bits);
    const bool tiny = (code & 0x7c00) == 0;
    if (tiny && run_.noise && (*run_.noise)() % 4 < 2) return 0;
    return static_cast<float>(Half::from_bits(code));
  }

  // To either side: which one is the device's.
  Word packed_half(Word at) {
    const Word bits = Half(real(at)).bits, size = bits & 0x7fff;
    const bool moves = run_.noise && size > 0x400 && size < 0x7bff;
    return moves ? bits + (*run_.noise)() % 3 - 1 : bits;
  }

  void call(const Step& s) {
    const float x = real(s.a);
    switch (s.function) {
      case 2: return set(s.to, std::nearbyintf(x));
      case 3: return set(s.to, std::truncf(x));
      case 4: return set(s.to, std::fabs(x));
      case 8: return set(s.to, std::floor(x));
      case 9: return set(s.to, std::ceil(x));
      case 29: return set_rounded(s.to, std::exp2(x), power_ulps(x));
      case 31: return set_rounded(s.to, std::sqrt(x), root_ulps);
      case 32: return set_rounded(s.to, 1 / std::sqrt(x), root_ulps);
      case 38: r_[s.to] = std::min(r_[s.a], r_[s.b]); return;
      case 39: r_[s.to] = static_cast<Word>(std::min(whole(s.a), whole(s.b))); return;
      case 42: r_[s.to] = static_cast<Word>(std::max(whole(s.a), whole(s.b))); return;
      case 50: return set_rounded(s.to, std::fmaf(x, real(s.b), real(s.c)), by_an_ulp);
      case 58: r_[s.to] = packed_half(s.a) | packed_half(s.a + 1) << 16; return;
      case 62: set(s.to, half(r_[s.a] & 0xffff)); return set(s.to + 1, half(r_[s.a] >> 16));
      case 75: r_[s.to] = r_[s.a] ? static_cast<Word>(31 - std::countl_zero(r_[s.a])) : ~0u; return;
      default: undefined_ = true;
    }
  }

  void step(const Step& s) {
    const Word a = r_[s.a], b = r_[s.b];
    switch (s.op) {
      case Opcode::load:
        if (s.function == buffer_storage) return load(s);
        if (s.function == shared_storage) {
          const Word at = shared_place(a, s.b);
          if (!undefined_) std::memcpy(&r_[s.to], &shared_[at], s.b * sizeof(Word));
          return;
        }
        std::memmove(&r_[s.to], &r_[s.a], s.b * sizeof(Word));
        return;
      case Opcode::store:
        if (s.function != shared_storage) return store(s);
        if (const Word at = shared_place(r_[s.to], s.b); !undefined_)
          std::memcpy(&shared_[at], &r_[s.a], s.b * sizeof(Word));
        return;
      case Opcode::access_chain: r_[s.to] = s.function + a * s.c + b; return;
      case Opcode::image_fetch: return fetch(s);
      case Opcode::cooperative_matrix_load: return share_matrix(s, false);
      case Opcode::cooperative_matrix_store: return share_matrix(s, true);
      case Opcode::ext_inst: return call(s);
      case Opcode::u_convert:
      case Opcode::s_convert: return convert(s);
      case Opcode::bitcast: r_[s.to] = a; return;
      case Opcode::convert_f_to_s: r_[s.to] = to_whole(real(s.a)); return;
      case Opcode::convert_s_to_f:
      case Opcode::convert_u_to_f: return from_whole(s);
      case Opcode::s_negate: r_[s.to] = 0 - a; return;
      case Opcode::bit_not: r_[s.to] = ~a; return;
      case Opcode::f_negate: r_[s.to] = a ^ 0x80000000; return;
      case Opcode::logical_not: r_[s.to] = !a; return;
      case Opcode::f_add: return set_rounded(s.to, real(s.a) + real(s.b), by_an_ulp);
      case Opcode::f_sub: return set_rounded(s.to, real(s.a) - real(s.b), by_an_ulp);
      case Opcode::f_mul: return set_rounded(s.to, real(s.a) * real(s.b), by_an_ulp);
      case Opcode::f_div: return set_rounded(s.to, real(s.a) / real(s.b), division_ulps);
      case Opcode::i_add: r_[s.to] = a + b; return;
      case Opcode::i_sub: r_[s.to] = a - b; return;
      case Opcode::i_mul: r_[s.to] = a * b; return;
      case Opcode::u_div:
      case Opcode::u_mod:
      case Opcode::s_div: r_[s.to] = quotient(s); return;
      case Opcode::u_mul_extended:
      case Opcode::s_mul_extended: return product(s);
      case Opcode::s_dot: r_[s.to] = dot_of_codes(a, b); return;
      case Opcode::select: r_[s.to] = a ? b : r_[s.c]; return;
      case Opcode::shift_left_logical:
      case Opcode::shift_right_logical:
      case Opcode::shift_right_arithmetic: r_[s.to] = shifted(s); return;
      case Opcode::bitwise_or:
      case Opcode::logical_or: r_[s.to] = a | b; return;
      case Opcode::bitwise_and:
      case Opcode::logical_and: r_[s.to] = a & b; return;
      case Opcode::bitwise_xor: r_[s.to] = a ^ b; return;
      default: r_[s.to] = compared(s); return;
    }
  }
  bool compared(const Step& s) const {
    const Word a = r_[s.a], b = r_[s.b];
    switch (s.op) {
      case Opcode::i_equal:
      case Opcode::logical_equal: return a == b;
      case Opcode::i_not_equal:
      case Opcode::logical_not_equal: return a != b;
      case Opcode::s_greater_than: return whole(s.a) > whole(s.b);
      case Opcode::s_greater_than_equal: return whole(s.a) >= whole(s.b);
      case Opcode::s_less_than: return whole(s.a) < whole(s.b);
      case Opcode::s_less_than_equal: return whole(s.a) <= whole(s.b);
      case Opcode::u_less_than: return a < b;
      case Opcode::f_ord_equal: return real(s.a) == real(s.b);
      case Opcode::f_ord_less_than: return real(s.a) < real(s.b);
      case Opcode::f_ord_greater_than: return real(s.a) > real(s.b);
      case Opcode::f_ord_less_than_equal: return real(s.a) <= real(s.b);
      default: return real(s.a) >= real(s.b);
    }
  }

  const ShaderProgram& program_;
  const ShaderCall& call_;
  const ShaderProgram::Run& run_;
  std::vector<Word>& shared_;
  std::uint64_t& left_;  // steps, of all
  std::vector<Word> r_;
  std::vector<ShaderWrite> writes_;
  std::size_t next_ = 0;
  std::uint64_t done_ = 0;
  bool undefined_ = false;
};

namespace {

using State = ShaderRunner::State;

// Each gets what the one of its subgroup that it asks gives: that one must be there, at the same shuffle.
bool shuffled(std::vector<ShaderRunner>& lanes, const std::vector<State>& states) {
  std::vector<Word> got(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (states[i] != State::shuffles) continue;
    const Word asked = lanes[i].wanted();
    const std::size_t from = i / subgroup_size * subgroup_size + asked;
    if (asked >= subgroup_size || from >= lanes.size() || states[from] != State::shuffles ||
        lanes[from].place() != lanes[i].place())
      return false;
    got[i] = lanes[from].given();
  }
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (states[i] == State::shuffles) lanes[i].take(got[i]);
  return true;
}

// All of a subgroup come to the same product.
bool multiplied(std::vector<ShaderRunner>& lanes, const std::vector<State>& states) {
  for (std::size_t begin = 0; begin < lanes.size(); begin += sharers) {
    const auto here = [&](std::size_t i) {
      return states[i] == State::multiplies && lanes[i].place() == lanes[begin].place();
    };
    if (states[begin] != State::multiplies) continue;
    float left[side * side], right[side * side];
    for (std::size_t i = 0; i < sharers; ++i) {
      if (!here(begin + i)) return false;
      for (Word n = 0; n < shares; ++n) {
        left[i * shares + n] = lanes[begin + i].left(n);
        right[i * shares + n] = lanes[begin + i].right(n);
      }
    }
    for (std::size_t e = 0; e < side * side; ++e) {
      ShaderRunner& lane = lanes[begin + e / shares];
      const auto n = static_cast<Word>(e % shares);
      double sum = lane.sum(n), size = std::fabs(sum);
      for (std::size_t k = 0; k < side; ++k) {
        const double product = static_cast<double>(left[e / side * side + k]) * right[k * side + e % side];
        sum += product, size += std::fabs(product);
      }
      lane.take_sum(n, sum, size);
    }
  }
  return true;
}

// From barrier to barrier: all come to the same one.
bool run_together(std::vector<ShaderRunner>& lanes) {
  std::vector<State> states(lanes.size(), State::waits);
  for (State next = State::waits;;) {
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (states[i] == next) states[i] = lanes[i].advance();
    if (std::ranges::count(states, State::undefined)) return false;
    if (std::ranges::count(states, State::shuffles)) {
      if (!shuffled(lanes, states)) return false;
      next = State::shuffles;
      continue;
    }
    if (std::ranges::count(states, State::multiplies)) {
      if (!multiplied(lanes, states)) return false;
      next = State::multiplies;
      continue;
    }
    if (!std::ranges::count(states, State::waits)) return true;
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (states[i] != State::waits || lanes[i].place() != lanes[0].place()) return false;
    next = State::waits;
  }
}

}  // namespace

std::optional<std::vector<ShaderWrite>> ShaderProgram::run(const ShaderCall& call, const Run& run,
                                                           std::uint64_t* steps) const {
  std::vector<ShaderRunner> lanes;
  const Word count = waits_ ? group_size_ : shuffles_ ? subgroup_size : 1;
  if (group_size_ % count != 0 || (multiplies_ && count % sharers != 0)) return std::nullopt;
  std::vector<Run> runs(count, run);
  std::vector<Word> shared(shared_words_, unwritten);
  std::uint64_t left = run.most_steps;
  lanes.reserve(count);
  for (Word i = 0; i < count; ++i) {
    runs[i].local = run.local / count * count + i;
    lanes.emplace_back(*this, call, runs[i], shared, left);
  }
  const bool defined = run_together(lanes);
  std::vector<ShaderWrite> writes;
  for (ShaderRunner& lane : lanes) {
    if (steps) *steps += lane.done();
    writes.insert(writes.end(), lane.writes().begin(), lane.writes().end());
  }
  if (defined) return writes;
  undo(call, writes);
  return std::nullopt;
}

void undo(const ShaderCall& call, std::span<const ShaderWrite> writes) {
  for (auto w = writes.rbegin(); w != writes.rend(); ++w)
    std::memcpy(call.bindings[w->binding].data() + w->index * w->element_bytes, &w->before, w->element_bytes);
}

}  // namespace tosaic::spirv
