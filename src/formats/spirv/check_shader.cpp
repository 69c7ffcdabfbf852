// SPDX-License-Identifier: Apache-2.0
#include "formats/spirv/check_shader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "formats/spirv/check_matrices.h"
#include "formats/spirv/uniform_flow.h"
#include "formats/spirv/word_bounds.h"

namespace tosaic::spirv {
namespace {

constexpr Word constant_storage = 0, input_storage = 1, shared_storage = 4, function_storage = 7, push_storage = 9,
               buffer_storage = 12;
constexpr Word group_number = 26, local_invocation = 27, global_invocation = 28,
               subgroup_number = 40;  // what an input is
constexpr Word most_ids = 1 << 20, most_depth = 64, most_group_size = 1024, push_words = 32;
constexpr Word most_shared_bytes = 1 << 16;  // what a device has is asked when it is known
constexpr Word unroll = 1, scope_group = 2, acquire_release_shared = 0x108;

class Checker : CheckedMatrices {
 public:
  explicit Checker(std::span<const Word> words) : CheckedMatrices(words) {}

  Result<ShaderInterface> check() {
    try {
      header();
      preamble();
      decorations();
      globals();
      function();
      return interface();
    } catch (const Wrong& w) { return error("vulkan-program.shader", fmt::format("word {}: {}", before_, w.what)); }
  }

 private:
  void header() {
    need(words_.size() > 5 && words_[0] == magic, "this is no SPIR-V");
    need(words_[1] == version_1_3 && words_[4] == 0, "the module is not of version 1.3");
    bound_ = words_[3];
    need(bound_ > 0 && bound_ <= most_ids, "too many ids");
    at_ = 5;
  }

  static bool says(std::span<const Word> operands, std::string_view text) {
    std::vector<Word> literal(text.size() / 4 + 1, 0);
    std::memcpy(literal.data(), text.data(), text.size());
    return std::equal(operands.begin(), operands.end(), literal.begin(), literal.end());
  }

  void preamble() {
    bool shader = false, packs_dots = false;
    while (comes(Opcode::capability)) {
      const Word c = take(Opcode::capability, 1).operands[0];
      shader |= c == static_cast<Word>(Capability::shader);
      may_store_8_ |= c == static_cast<Word>(Capability::storage_buffer_8);
      may_store_16_ |= c == static_cast<Word>(Capability::storage_buffer_16);
      may_view_ |= c == static_cast<Word>(Capability::sampled_buffer);
      result_.shuffles |= c == static_cast<Word>(Capability::group_non_uniform_shuffle);
      result_.matrices |= c == static_cast<Word>(Capability::cooperative_matrix);
      result_.dots |= c == static_cast<Word>(Capability::dot_product);
      packs_dots |= c == static_cast<Word>(Capability::dot_product_packed);
      constexpr Capability known[] = {
          Capability::shader,         Capability::storage_buffer_8,   Capability::storage_buffer_16,
          Capability::sampled_buffer, Capability::group_non_uniform,  Capability::group_non_uniform_shuffle,
          Capability::float16,        Capability::cooperative_matrix, Capability::dot_product_packed,
          Capability::dot_product};
      need(std::ranges::find(known, static_cast<Capability>(c)) != std::end(known),
           "a capability that our shaders do not need");
    }
    need(shader, "the module is no shader");
    bool stores_8 = false, has_matrices = false, has_dots = false;
    while (comes(Opcode::extension)) {
      const auto name = next().operands;
      bool* known = says(name, "SPV_KHR_cooperative_matrix")    ? &has_matrices
                    : says(name, "SPV_KHR_integer_dot_product") ? &has_dots
                    : says(name, "SPV_KHR_8bit_storage")        ? &stores_8
                                                                : nullptr;
      need(known, "an extension that our shaders do not need");
      *known = true;
    }
    need(stores_8 || !may_store_8_, "8-bit storage without its extension");
    need(has_matrices || !result_.matrices, "matrices without their extension");
    need((has_dots || !result_.dots) && packs_dots == result_.dots, "dot products without what they need");
    if (comes(Opcode::ext_inst_import)) {
      const Instruction i = next();
      need(!i.operands.empty() && says(i.operands.subspan(1), "GLSL.std.450"), "another set of instructions");
      glsl_ = i.operands[0];
      define(glsl_, 0);
    }
    const Instruction memory = take(Opcode::memory_model, 2);
    need(memory.operands[0] == 0 && memory.operands[1] == 1, "another memory model");
    const Instruction entry = next();
    need(entry.opcode == Opcode::entry_point && entry.operands.size() >= 4 && entry.operands[0] == 5 &&
             says(entry.operands.subspan(2, 2), "main"),
         "no compute entry point 'main'");
    function_ = entry.operands[1];
    interface_ids_.assign(entry.operands.begin() + 4, entry.operands.end());
    const Instruction mode = take(Opcode::execution_mode, 5);
    need(mode.operands[0] == function_ && mode.operands[1] == 17, "no local size");
    need(mode.operands[2] >= 1 && mode.operands[2] <= most_group_size && mode.operands[3] == 1 && mode.operands[4] == 1,
         "a local size that not every device has");
    result_.group_size = mode.operands[2];
  }

  void decorations() {
    while (comes(Opcode::decorate) || comes(Opcode::member_decorate)) {
      const Instruction i = next();
      if (i.opcode == Opcode::member_decorate) {
        need(i.operands.size() == 4 && i.operands[1] == 0 && i.operands[2] == 35 && i.operands[3] == 0,
             "a member that does not lie at 0");
        need(laid_.insert(i.operands[0]).second, "a member is decorated twice");
        continue;
      }
      need(i.operands.size() == 2 || i.operands.size() == 3, "a decoration of another length");
      const Word value = i.operands.size() == 3 ? i.operands[2] : 0;
      need(decorated_.try_emplace({i.operands[0], i.operands[1]}, value).second, "a decoration is repeated");
      const bool has_value = i.operands.size() == 3;
      switch (i.operands[1]) {
        case 2:
        case 24: need(!has_value, "a decoration with a value"); break;
        case decoration_no_contraction:
          need(!has_value, "a decoration with a value");
          exact_.insert(i.operands[0]);
          break;
        case 6:
        case 11:
        case decoration_binding:
        case decoration_descriptor_set: need(has_value, "a decoration without its value"); break;
        default: wrong("a decoration that our shaders do not have");
      }
    }
  }
  std::optional<Word> decoration(Id id, Word which) const {
    const auto found = decorated_.find({id, which});
    return found == decorated_.end() ? std::nullopt : std::optional(found->second);
  }

  // ---- types, constants, variables of the module
  void add_type(Id id, Type made) {
    define(id, 0);
    const auto same = [&](const auto& other) {
      return other.second.kind == made.kind && other.second.size == made.size && other.second.of == made.of;
    };
    need(std::none_of(types_.begin(), types_.end(), same), "a type is declared twice");
    types_.emplace(id, std::move(made));
  }

  void globals() {
    while (!comes(Opcode::function)) {
      const Instruction i = next();
      const auto& o = i.operands;
      const auto length = [&](std::size_t n) { need(o.size() == n, "an instruction of another length"); };
      switch (i.opcode) {
        case Opcode::type_void:
          length(1);
          add_type(o[0], {Type::nothing});
          break;
        case Opcode::type_bool:
          length(1);
          add_type(o[0], {Type::truth});
          break;
        case Opcode::type_int:
          length(3);
          need(o[2] == 0 && (o[1] == 32 || (o[1] == 8 && may_store_8_) || (o[1] == 16 && may_store_16_)),
               "an integer type that our shaders do not have");
          add_type(o[0], {Type::integer, o[1]});
          break;
        case Opcode::type_float:
          length(2);
          need(o[1] == 32 || (o[1] == 16 && result_.matrices), "a float that our shaders do not have");
          add_type(o[0], {Type::real, o[1]});
          break;
        case Opcode::type_vector:
          length(3);
          need((is_word(o[1]) || is_real(o[1])) && o[2] >= 2 && o[2] <= 4, "a vector that our shaders do not have");
          add_type(o[0], {Type::vector, o[2], {o[1]}});
          break;
        case Opcode::type_cooperative_matrix:
          need(result_.matrices, "a matrix in a module that has none");
          add_type(o[0], matrix_type(o));
          break;
        case Opcode::type_image: image(o); break;
        case Opcode::type_array:
          length(3);
          need(constants_.contains(o[2]) && bytes_of(o[1]) > 0 && constants_[o[2]] > 0 &&
                   constants_[o[2]] <= most_shared_bytes / bytes_of(o[1]) && !is(o[1], Type::integer, 8) &&
                   !is(o[1], Type::integer, 16) && !is(o[1], Type::real, 16),
               "an array that our shaders do not have");
          add_type(o[0], {Type::array, constants_[o[2]], {o[1]}});
          break;
        case Opcode::type_runtime_array:
          length(2);
          need(bytes_of(o[1]) > 0 && !is(o[1], Type::real, 16), "an array whose elements are no scalars");
          add_type(o[0], {Type::runtime_array, 0, {o[1]}});
          break;
        case Opcode::type_struct: structure(o); break;
        case Opcode::type_pointer: pointer(o); break;
        case Opcode::type_function:
          length(2);
          need(is(o[1], Type::nothing), "a function with a result");
          add_type(o[0], {Type::function, 0, {o[1]}});
          break;
        case Opcode::constant_true:
        case Opcode::constant_false:
          length(2);
          need(is_truth(o[0]), "a boolean of another type");
          define(o[1], o[0]);
          break;
        case Opcode::constant:
          length(3);
          need(is_word(o[0]) || is_real(o[0]), "a constant that has not 32 bits");
          define(o[1], o[0]);
          if (is_word(o[0])) constants_[o[1]] = o[2];
          if (is_word(o[0])) bounds_.constant(o[1], o[2]);
          break;
        case Opcode::variable:
          length(3);
          variable(o);
          break;
        default: wrong(fmt::format("instruction {} among types and constants", static_cast<int>(i.opcode)));
      }
    }
  }

  // A uniform texel buffer, whose format the binding says.
  void image(std::span<const Word> o) {
    constexpr Word buffer_of_unknown_format[] = {5, 0, 0, 0, 1, 0};
    need(may_view_ && o.size() == 8 && (is_word(o[1]) || is_real(o[1])) &&
             std::ranges::equal(o.subspan(2), buffer_of_unknown_format),
         "an image that is no texel buffer");
    add_type(o[0], {Type::image, 0, {o[1]}});
  }

  void structure(std::span<const Word> o) {
    need(o.size() == 2 || o.size() == 3, "a structure that our shaders do not have");
    if (o.size() == 3) {
      need(is_word(o[1]) && is_word(o[2]), "a pair whose elements are no 32-bit words");
    } else {
      // The block of a buffer or of the push constants: laid out, or a driver must guess.
      need(is(o[1], Type::runtime_array) || is(o[1], Type::array), "a block that holds no array");
      need(decoration(o[0], 2) && laid_.contains(o[0]), "a block without a layout");
      need(!is(o[1], Type::array) || (is_word(type(o[1]).of[0]) && type(o[1]).size == push_words),
           "push constants of another form");
      need(decoration(o[1], 6) == bytes_of(type(o[1]).of[0]), "an array of another stride");
    }
    add_type(o[0], {Type::structure, 0, {o.begin() + 1, o.end()}});
  }

  void pointer(std::span<const Word> o) {
    need(o.size() == 3, "an instruction of another length");
    const Type& target = type(o[2]);
    const bool block = target.kind == Type::structure && target.of.size() == 1;
    const bool number = bytes_of(o[2]) > 0 && !is(o[2], Type::real, 16);
    const bool word = is_word(o[2]);
    bool fits = false;
    switch (o[1]) {
      case constant_storage: fits = target.kind == Type::image; break;
      case input_storage:
        fits = word || (target.kind == Type::vector && target.size == 3 && is_word(target.of[0]));
        break;
      case function_storage:
        fits = word || is_real(o[2]) || is_truth(o[2]) || target.kind == Type::vector || target.kind == Type::matrix;
        break;
      case shared_storage:
        fits = word || is_real(o[2]) || target.kind == Type::vector ||
               (target.kind == Type::array && !decoration(o[2], 6));
        break;
      case push_storage: fits = word || (block && is(target.of[0], Type::array)); break;
      case buffer_storage: fits = number || (block && is(target.of[0], Type::runtime_array)); break;
      default: break;
    }
    need(fits, "a pointer that our shaders do not have");
    add_type(o[0], {Type::pointer, o[1], {o[2]}});
  }

  void variable(std::span<const Word> o) {
    need(is(o[0], Type::pointer, o[2]) && o[2] != function_storage, "a variable of another type");
    define(o[1], o[0]);
    const Id target = type(o[0]).of[0];
    if (o[2] == input_storage) return input(o[1]);
    if (o[2] == shared_storage) {
      need(is(target, Type::array), "shared memory that is no array");
      result_.shared_bytes += type(target).size * bytes_of(type(target).of[0]);
      return need(result_.shared_bytes <= most_shared_bytes, "more shared memory than any device has");
    }
    if (o[2] == constant_storage) {
      const bool words = is_word(type(target).of[0]);
      using Kind = ShaderBinding::Kind;
      return bind(o[1], {words ? Kind::texels_of_words : Kind::texels_of_reals, 32, false});
    }
    need(is(target, Type::structure), "a variable that is no block");
    if (o[2] == push_storage) {
      need(!result_.has_pushes, "push constants twice");
      result_.has_pushes = true;
      return;
    }
    const Word bits = 8 * bytes_of(type(type(target).of[0]).of[0]);
    const bool written = !decoration(o[1], 24);
    bind(o[1], {ShaderBinding::Kind::buffer, bits, written});
    if (!written) read_only_.insert(o[1]);
  }
  void bind(Id variable, ShaderBinding made) {
    const auto binding = decoration(variable, decoration_binding);
    need(binding && decoration(variable, decoration_descriptor_set) == 0u, "a buffer without a binding");
    need(*binding == result_.bindings.size(), "bindings out of order");
    result_.bindings.push_back(made);
  }

  void input(Id id) {
    const auto which = decoration(id, 11);
    const bool number = which == subgroup_number;
    need(which && (number || (*which >= group_number && *which <= global_invocation)) && !inputs_.contains(*which) &&
             is_word(type(type_of(id)).of[0]) == number && (!number || result_.matrices) &&
             std::ranges::find(interface_ids_, id) != interface_ids_.end(),
         "an input that our shaders do not have");
    inputs_[*which] = id;
  }

  // ---- the function
  void function() {
    const Instruction f = take(Opcode::function, 4);
    need(is(f.operands[0], Type::nothing) && f.operands[1] == function_ && f.operands[2] == 0 &&
             is(f.operands[3], Type::function),
         "a function of another kind");
    define(function_, 0);
    label(take(Opcode::label, 1).operands[0]);
    while (comes(Opcode::variable)) {
      const Instruction v = take(Opcode::variable, 3);
      need(is(v.operands[0], Type::pointer, function_storage) && v.operands[2] == function_storage,
           "a variable of another type");
      define(v.operands[1], v.operands[0]);
    }
    need(!region(0, 0), "the function does not return");
    take(Opcode::function_end, 0);
    need(at_ == words_.size(), "there is something after the function");
    need(exact_.empty(), "something else than arithmetic of reals that must be exact");
    need(interface_ids_.size() == inputs_.size(), "an input that is not there");
    need(!has_barrier_ || !leaves_early_, "a barrier that some invocations do not reach");
    need(flow_.barriers_are_uniform(bound_), "a barrier that some invocations may not reach");
  }

  void label(Id id) { define(id, 0); }
  Id expect_label(Id wanted) {
    const Id id = take(Opcode::label, 1).operands[0];
    need(id == wanted, "another block than the expected one");
    label(id);
    return id;
  }

  // Ids of a region are seen by it alone.
  class Scope {
   public:
    explicit Scope(Checker& c) : checker_(c), size_(c.visible_.size()) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      for (std::size_t i = size_; i < checker_.visible_.size(); ++i) checker_.types_of_.erase(checker_.visible_[i]);
      checker_.visible_.resize(size_);
    }

   private:
    Checker& checker_;
    const std::size_t size_;
  };

  // Instructions up to the region's end: a branch to `end` (true), or a return (false; the only end where `end` is 0).
  bool region(Id end, Word depth) {
    need(depth < most_depth, "blocks nest too deep");
    for (;;) {
      const Instruction i = next();
      switch (i.opcode) {
        case Opcode::return_:
          need(i.operands.empty(), "a return with a value");
          leaves_early_ |= depth > 0;
          return false;
        case Opcode::branch:
          need(i.operands.size() == 1, "an instruction of another length");
          if (end != 0 && i.operands[0] == end) return true;
          loop(i.operands[0], depth);
          break;
        case Opcode::selection_merge:
          need(i.operands.size() == 2 && i.operands[1] == 0, "a selection with hints");
          selection(i.operands[0], depth);
          break;
        case Opcode::control_barrier: barrier(i); break;
        default: plain(i);
      }
    }
  }

  void selection(Id after, Word depth) {
    const Instruction b = take(Opcode::branch_conditional, 3);
    need(is_truth(type_of(b.operands[0])), "a condition that is no boolean");
    need(b.operands[1] != b.operands[2] && b.operands[1] != after, "a branch that does not branch");
    flow_.enter(b.operands[0]);
    {
      const Scope scope(*this);
      expect_label(b.operands[1]);
      region(after, depth + 1);
    }
    if (b.operands[2] != after) {
      const Scope scope(*this);
      expect_label(b.operands[2]);
      region(after, depth + 1);
    }
    flow_.leave();
    expect_label(after);
  }

  void loop(Id header, Word depth) {
    expect_label(header);
    const Instruction merge = take(Opcode::loop_merge, 3);
    const Id after = merge.operands[0], continuing = merge.operands[1];
    need(merge.operands[2] <= unroll && after != continuing, "a loop with other hints");
    const Id test = take(Opcode::branch, 1).operands[0];
    {
      const Scope scope(*this);
      expect_label(test);
      while (!comes(Opcode::branch_conditional)) {
        need(!comes(Opcode::store), "a store in a loop's test");
        plain(next());
      }
      const Instruction b = take(Opcode::branch_conditional, 3);
      need(is_truth(type_of(b.operands[0])) && b.operands[2] == after && b.operands[1] != after,
           "a loop that does not end as loops do");
      flow_.enter(b.operands[0]);
      {
        const Scope body(*this);
        expect_label(b.operands[1]);
        need(region(continuing, depth + 1), "a loop whose body returns");
      }
      expect_label(continuing);
      while (!comes(Opcode::branch)) plain(next());
      need(take(Opcode::branch, 1).operands[0] == header, "a loop that does not begin again");
      flow_.leave();
    }
    expect_label(after);
  }

  // ---- instructions without branches
  enum class Operand : std::uint8_t { truth, word, real };
  bool matches(Id t, Operand o) const {
    return o == Operand::truth ? is_truth(t) : o == Operand::word ? is_word(t) : is_real(t);
  }
  void arithmetic(const Instruction& i, std::initializer_list<Operand> operands, Operand result) {
    need(i.operands.size() == operands.size() + 2, "an instruction of another length");
    std::size_t n = 2;
    for (Operand o : operands) need(matches(type_of(i.operands[n++]), o), "an operand of another type");
    need(matches(i.operands[0], result), "a result of another type");
    define(i.operands[1], i.operands[0]);
  }

  // Of numbers, or of vectors of one type, part by part.
  void elementwise(const Instruction& i, Operand part) {
    need(i.operands.size() == 4, "an instruction of another length");
    const Id t = i.operands[0];
    if (is(t, Type::matrix)) return multiplied_matrices(i);
    if (!is(t, Type::vector)) return arithmetic(i, {part, part}, part);
    need(matches(type(t).of[0], part) && type_of(i.operands[2]) == t && type_of(i.operands[3]) == t,
         "vectors of another type");
    define(i.operands[1], t);
  }

  void plain(const Instruction& i) {
    typed(i);
    if (is_of_reals(i.opcode)) exact_.erase(i.operands[1]);
    if (is_of_matrices(i.opcode)) all_come();
    if (i.opcode == Opcode::cooperative_matrix_store) return;
    if (i.opcode == Opcode::store) {
      if (type(type_of(i.operands[0])).size == function_storage) flow_.store(i.operands[0], i.operands[1]);
      return;
    }
    const auto from = i.operands.subspan(2);
    bounds_.result(i.opcode, i.operands[1], from);
    switch (i.opcode) {
      case Opcode::load: return loaded(i.operands[1], i.operands[2]);
      case Opcode::composite_extract: return flow_.value(i.operands[1], from.first(1));
      case Opcode::ext_inst: return flow_.value(i.operands[1], from.subspan(2));
      default: return flow_.value(i.operands[1], from);
    }
  }

  static bool is_of_reals(Opcode opcode) {
    switch (opcode) {
      case Opcode::f_negate:
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul:
      case Opcode::f_div:
      case Opcode::f_ord_equal:
      case Opcode::f_ord_less_than:
      case Opcode::f_ord_greater_than:
      case Opcode::f_ord_less_than_equal:
      case Opcode::f_ord_greater_than_equal: return true;
      default: return false;
    }
  }

  // What a load is known to give.
  void loaded(Id id, Id pointer) {
    switch (type(type_of(pointer)).size) {
      case function_storage: return flow_.value(id, {{pointer}});
      case push_storage: return;
      case input_storage:
        if (decoration(pointer, 11) == group_number) return;
        if (decoration(pointer, 11) == local_invocation) bounds_.bounded(id, result_.group_size - 1);
        break;
      default: break;
    }
    flow_.varying(id);
  }

  void barrier(const Instruction& i) {
    need(i.operands.size() == 3, "an instruction of another length");
    need(is_constant(i.operands[0], scope_group) && is_constant(i.operands[1], scope_group) &&
             is_constant(i.operands[2], acquire_release_shared),
         "a barrier of another kind");
    all_come();
  }
  // Here every invocation of the group must be.
  void all_come() {
    has_barrier_ = true;
    flow_.barrier();
  }

  void typed(const Instruction& i) {
    using enum Operand;
    const auto op = static_cast<int>(i.opcode);
    const auto among = [op](int first, int last) { return op >= first && op <= last; };
    switch (i.opcode) {
      case Opcode::load: return load(i);
      case Opcode::store: return store(i);
      case Opcode::access_chain: return access(i);
      case Opcode::composite_construct: return construct(i);
      case Opcode::composite_extract: return extract(i);
      case Opcode::image_fetch: return fetch(i);
      case Opcode::group_non_uniform_shuffle: return shuffle(i);
      case Opcode::cooperative_matrix_load: return load_matrix(i);
      case Opcode::cooperative_matrix_store: return store_matrix(i);
      case Opcode::cooperative_matrix_mul_add: return multiply_add(i);
      case Opcode::ext_inst: return glsl(i);
      case Opcode::u_convert:
      case Opcode::s_convert: return convert(i);
      case Opcode::bitcast:
        need(i.operands.size() == 3, "an instruction of another length");
        return is_word(i.operands[0]) ? arithmetic(i, {real}, word) : arithmetic(i, {word}, real);
      case Opcode::convert_f_to_s: return arithmetic(i, {real}, word);
      case Opcode::convert_s_to_f:
      case Opcode::convert_u_to_f: return arithmetic(i, {word}, real);
      case Opcode::s_negate:
      case Opcode::bit_not: return arithmetic(i, {word}, word);
      case Opcode::f_negate: return arithmetic(i, {real}, real);
      case Opcode::logical_not: return arithmetic(i, {truth}, truth);
      case Opcode::f_add:
      case Opcode::f_sub:
      case Opcode::f_mul: return elementwise(i, real);
      case Opcode::f_div: return arithmetic(i, {real, real}, real);
      case Opcode::i_add:
      case Opcode::i_sub:
      case Opcode::i_mul: return elementwise(i, word);
      case Opcode::vector_times_scalar: return scale(i);
      case Opcode::u_div:
      case Opcode::s_div:
      case Opcode::u_mod: return arithmetic(i, {word, word}, word);
      case Opcode::u_mul_extended:
      case Opcode::s_mul_extended: return extended(i);
      case Opcode::select: return select(i);
      case Opcode::s_dot: return dot(i);
      default: break;
    }
    if (among(164, 167)) return arithmetic(i, {truth, truth}, truth);
    if (among(170, 171) || i.opcode == Opcode::s_greater_than || i.opcode == Opcode::s_greater_than_equal ||
        i.opcode == Opcode::u_less_than || i.opcode == Opcode::s_less_than || i.opcode == Opcode::s_less_than_equal)
      return arithmetic(i, {word, word}, truth);
    if (among(180, 190) && op % 2 == 0) return arithmetic(i, {real, real}, truth);
    if (among(194, 199)) return arithmetic(i, {word, word}, word);
    wrong(fmt::format("instruction {}, which our shaders do not have", op));
  }

  void load(const Instruction& i) {
    need(i.operands.size() == 3, "an instruction of another length");
    const Type& p = type(type_of(i.operands[2]));
    need(p.kind == Type::pointer && p.of[0] == i.operands[0] && is_loaded_whole(i.operands[0]),
         "a load of another type");
    define(i.operands[1], i.operands[0]);
  }
  void store(const Instruction& i) {
    need(i.operands.size() == 2, "an instruction of another length");
    const Type& p = type(type_of(i.operands[0]));
    need(p.kind == Type::pointer &&
             (p.size == function_storage || p.size == buffer_storage || p.size == shared_storage) &&
             p.of[0] == type_of(i.operands[1]) && is_loaded_whole(p.of[0]) && !read_only_.contains(i.operands[0]),
         "a store of another type, or to what is only read");
  }
  bool is_loaded_whole(Id t) const { return !is(t, Type::structure) && !is(t, Type::array); }

  // An element of a shared array, or a part of one: both indices are known to lie inside.
  void access_shared(const Instruction& i, const Type& array) {
    const Type& result = type(i.operands[0]);
    need(result.kind == Type::pointer && result.size == shared_storage, "a pointer of another storage class");
    const auto index = [&](std::size_t n, Word size) {
      need(is_word(type_of(i.operands[n])) && bounds_.highest(i.operands[n]) < size,
           "an index into shared memory that may lie outside");
    };
    index(3, array.size);
    Id element = array.of[0];
    if (i.operands.size() == 5) {
      need(is(element, Type::vector), "a component of a scalar");
      index(4, type(element).size);
      element = type(element).of[0];
    }
    need(result.of[0] == element, "a pointer of another type");
    define(i.operands[1], i.operands[0]);
    if (i.operands.size() == 4) known_place(i.operands[1], array.size - 1 - bounds_.highest(i.operands[3]));
  }
  void access(const Instruction& i) {
    need(i.operands.size() == 4 || i.operands.size() == 5, "an instruction of another length");
    const Type& base = type(type_of(i.operands[2]));
    if (base.kind == Type::pointer && base.size == shared_storage && is(base.of[0], Type::array))
      return access_shared(i, type(base.of[0]));
    need(i.operands.size() == 5, "an instruction of another length");
    const Type& result = type(i.operands[0]);
    need(base.kind == Type::pointer && is(base.of[0], Type::structure) && result.kind == Type::pointer &&
             result.size == base.size,
         "a pointer into something else than a block");
    const auto member = constants_.find(i.operands[3]);
    need(member != constants_.end() && member->second == 0 && is_word(type_of(i.operands[4])),
         "a pointer that is to no element");
    const Type& array = type(type(base.of[0]).of[0]);
    need(result.of[0] == array.of[0], "a pointer of another type");
    if (array.kind == Type::array) {
      const auto index = constants_.find(i.operands[4]);
      need(index != constants_.end() && index->second < array.size, "a push constant that is not there");
    }
    define(i.operands[1], i.operands[0]);
    if (read_only_.contains(i.operands[2])) read_only_.insert(i.operands[1]);
  }
  void scale(const Instruction& i) {
    need(i.operands.size() == 4 && is(i.operands[0], Type::vector) && is_real(type(i.operands[0]).of[0]) &&
             type_of(i.operands[2]) == i.operands[0] && is_real(type_of(i.operands[3])),
         "a scaled vector of another type");
    define(i.operands[1], i.operands[0]);
  }
  void extract(const Instruction& i) {
    need(i.operands.size() == 4, "an instruction of another length");
    const Type& whole = type(type_of(i.operands[2]));
    const bool pair = whole.kind == Type::structure && whole.of.size() == 2;
    need((pair && i.operands[3] < 2 && whole.of[i.operands[3]] == i.operands[0]) ||
             (whole.kind == Type::vector && i.operands[3] < whole.size && whole.of[0] == i.operands[0]),
         "a part that is not there");
    define(i.operands[1], i.operands[0]);
  }
  void construct(const Instruction& i) {
    if (i.operands.size() >= 2 && is(i.operands[0], Type::matrix)) return filled_matrix(i);
    need(i.operands.size() >= 2 && is(i.operands[0], Type::vector), "a composite that is no vector");
    const Type& whole = type(i.operands[0]);
    need(i.operands.size() == 2 + whole.size, "an instruction of another length");
    for (Id part : i.operands.subspan(2)) need(type_of(part) == whole.of[0], "a part of another type");
    define(i.operands[1], i.operands[0]);
  }
  void fetch(const Instruction& i) {
    need(i.operands.size() == 4, "an instruction of another length");
    const Type& view = type(type_of(i.operands[2]));
    need(view.kind == Type::image && is(i.operands[0], Type::vector, 4) && type(i.operands[0]).of[0] == view.of[0] &&
             is_word(type_of(i.operands[3])),
         "a texel of another type");
    define(i.operands[1], i.operands[0]);
  }
  void shuffle(const Instruction& i) {
    constexpr Word subgroup = 3;
    need(i.operands.size() == 5 && result_.shuffles, "a shuffle of another kind");
    need(is_constant(i.operands[2], subgroup), "a shuffle beyond the subgroup");
    const Id t = i.operands[0];
    need((is_word(t) || is_real(t)) && type_of(i.operands[3]) == t && is_word(type_of(i.operands[4])),
         "a shuffle of another type");
    define(i.operands[1], t);
  }
  void convert(const Instruction& i) {
    need(i.operands.size() == 3, "an instruction of another length");
    const Id from = type_of(i.operands[2]), to = i.operands[0];
    need(is(from, Type::integer) && is(to, Type::integer) && type(from).size != type(to).size &&
             (is_word(from) || is_word(to)),
         "a conversion of another type");
    define(i.operands[1], to);
  }
  void dot(const Instruction& i) {
    const auto& o = i.operands;
    need(result_.dots && o.size() == 5 && o[4] == four_codes,
         "a dot product of something else than packed 8-bit integers");
    for (const Id word : {o[0], type_of(o[2]), type_of(o[3])}) need(is_word(word), "operands of another type");
    define(o[1], o[0]);
  }

  void extended(const Instruction& i) {
    need(i.operands.size() == 4 && is_word(type_of(i.operands[2])) && is_word(type_of(i.operands[3])) &&
             is(i.operands[0], Type::structure) && type(i.operands[0]).of.size() == 2,
         "a product of another type");
    define(i.operands[1], i.operands[0]);
  }
  void select(const Instruction& i) {
    need(i.operands.size() == 5 && is_truth(type_of(i.operands[2])), "a condition that is no boolean");
    const Id t = i.operands[0];
    need((is_word(t) || is_real(t) || is_truth(t)) && type_of(i.operands[3]) == t && type_of(i.operands[4]) == t,
         "a choice among other types");
    define(i.operands[1], t);
  }
  void glsl(const Instruction& i) {
    need(i.operands.size() >= 5 && glsl_ != 0 && i.operands[2] == glsl_, "another set of instructions");
    const Word function = i.operands[3];
    const auto arguments = i.operands.subspan(4);
    const auto all = [&](std::size_t count, bool real) {
      need(arguments.size() == count, "a call of another length");
      for (Id a : arguments) need(real ? is_real(type_of(a)) : is_word(type_of(a)), "an argument of another type");
      need(real ? is_real(i.operands[0]) : is_word(i.operands[0]), "a result of another type");
    };
    switch (function) {
      case 2:
      case 3:
      case 4:
      case 8:
      case 9:
      case 29:
      case 31:
      case 32: all(1, true); break;
      case 38:
      case 39:
      case 42: all(2, false); break;
      case 50: all(3, true); break;
      case 58:
        need(arguments.size() == 1 && is(type_of(arguments[0]), Type::vector, 2) &&
                 is_real(type(type_of(arguments[0])).of[0]) && is_word(i.operands[0]),
             "f16 values of another type");
        break;
      case 75: all(1, false); break;
      case 62:
        need(arguments.size() == 1 && is_word(type_of(arguments[0])) && is(i.operands[0], Type::vector, 2) &&
                 is_real(type(i.operands[0]).of[0]),
             "f16 values of another type");
        break;
      default: wrong(fmt::format("function {}, which our shaders do not call", function));
    }
    define(i.operands[1], i.operands[0]);
  }

  ShaderInterface interface() const { return result_; }

  Id glsl_ = 0, function_ = 0;
  bool may_store_8_ = false, may_store_16_ = false, may_view_ = false;
  std::vector<Id> interface_ids_;
  std::set<Id> laid_, read_only_;
  std::set<Id> exact_;         // what is decorated so, and has not come yet
  std::map<Word, Id> inputs_;  // by what they are
  WordBounds bounds_;
  UniformFlow flow_;
  bool has_barrier_ = false, leaves_early_ = false;
  std::map<std::pair<Id, Word>, Word> decorated_;
  ShaderInterface result_;
};

}  // namespace

Result<ShaderInterface> check_shader(std::span<const Word> words) { return Checker(words).check(); }

}  // namespace tosaic::spirv
