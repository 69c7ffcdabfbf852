// SPDX-License-Identifier: Apache-2.0
// The one IR of tosaic, used for PyTorch programs ("aten.*" nodes) and for TOSA graphs ("tosa.*" nodes).
// Values and nodes live in two vectors and refer to each other by index: a Graph is copied like an int.
// Nodes stand in topological order. A value is a graph input, a constant, or one node's output.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "ir/attribute.h"
#include "ir/loc.h"
#include "ir/operator.h"
#include "ir/type.h"

namespace tosaic {

using ValueId = std::uint32_t;
inline constexpr ValueId no_value = 0xffffffffu;  // an optional operand that is not given

struct Value {
  std::string name;  // unique in the graph
  TensorType type;
  Bytes constant;  // not null: a constant, dense row-major elements in storage form (see storage_size)
  std::optional<Dim> size = std::nullopt;  // of one integer that follows from sizes (sym_size): which
  bool is_constant() const { return !constant.null(); }
};

// A node's attributes: few, in the order in which they were set, found by name.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<std::string, Attr>> list);
  const Attr* find(std::string_view name) const {
    for (const auto& [n, a] : list_)
      if (n == name) return &a;
    return nullptr;
  }
  // The attribute as T, which the caller (after verification) knows it to be.
  template <class T>
  const T& get(std::string_view name) const {
    return std::get<T>(*find(name));
  }
  template <class T>
  T get_or(std::string_view name, T otherwise) const {
    const Attr* a = find(name);
    const T* t = a ? std::get_if<T>(a) : nullptr;
    return t ? *t : otherwise;
  }
  void set(std::string name, Attr value);
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  std::size_t size() const { return list_.size(); }
  bool operator==(const Attrs&) const = default;

 private:
  std::vector<std::pair<std::string, Attr>> list_;
};

struct Graph;

struct Node {
  Operator op;                  // aten.relu.default, tosa.clamp, quantized_decomposed.quantize_per_tensor.default
  std::vector<ValueId> inputs;  // tensor operands in schema order, a tensor list in place; no_value where absent
  Attrs attrs;                  // every other argument, by schema name; defaults may be left out
  std::vector<ValueId> outputs;
  LocRef loc;
  std::vector<Graph> regions;  // bodies of control flow
};

// A buffer that outlives one run: read from `input`, its new content is `output` (KV caches, running statistics).
// `input` is no constant, though what it holds before the first run is known: `initial`, or zeros where that is null.
struct State {
  std::string name;
  ValueId input = no_value, output = no_value;
  Bytes initial = {};
  bool operator==(const State&) const = default;
};

// What the sizes of inputs must hold for the graph to be the program, which took one side of a branch by it.
struct Guard {
  std::string text;  // for people: "x.size()[0] % 2 == 0"
  Dim violation;     // 0 where it holds
  bool operator==(const Guard&) const = default;
};

struct Graph {
  std::string name = "main";
  std::deque<Value> values;  // a deque: references to values stay good while a graph grows
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  std::vector<State> states;
  std::vector<Guard> guards;  // until its sizes are numbers

  ValueId add_value(std::string value_name, TensorType type, Bytes constant = {});
  Value& operator[](ValueId id) { return values[id]; }
  const Value& operator[](ValueId id) const { return values[id]; }
};

// The node index that produces each value, -1 for inputs and constants; and the nodes that read each value.
std::vector<std::int32_t> producers(const Graph& graph);
std::vector<std::vector<std::uint32_t>> consumers(const Graph& graph);
// Does PyTorch's naming say that the operator writes to its first tensor? "aten.relu_.default".
bool name_says_in_place(Operator op);
// Drops nodes whose outputs nobody needs, or have become constants, and the values that then belong to nobody. What
// writes in place is needed for that.
void drop_dead(Graph& graph);
// The nodes alone: values keep their ids.
void drop_dead_nodes(Graph& graph);

// Gives later values of the same name a suffix; inputs and outputs keep theirs.
void make_names_unique(Graph& graph);

// How much of a constant's data the text holds. `all` parses back; `brief` is for people: long constants
// show their size and hash only.
enum class ConstantText { all, brief };
std::string print(const Graph& graph, ConstantText constants = ConstantText::brief, bool with_locations = false);
// Reads what print(graph, all) wrote. `file` is for error messages only.
Result<Graph> parse(std::string_view text, const std::string& file = "<text>");
// Structure only: ids in range, each value defined once and before use, names unique, constants of the right size.
Status verify(const Graph& graph);

}  // namespace tosaic
