// SPDX-License-Identifier: Apache-2.0
// The nodes of a program's graph: calls and their arguments, and what they write. Private to read/.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/program_names.h"

namespace tosaic {

struct Schema;

class ProgramNodes : protected ProgramNames {
 protected:
  ProgramNodes(const Json& graph, std::string name, const ProgramSource& source, int depth)
      : ProgramNames(graph, std::move(name), source), depth_(depth) {}

  void read_nodes();
  // Which calls arrived decomposed, once for each operator.
  void say_decomposed() const;
  // `buffer` will hold `output` after a run; the same as its input when it is written through a view.
  void set_state(ValueId input, const std::string& buffer, ValueId output);

  std::unordered_map<ValueId, LocRef> written_inputs_;
  std::unordered_map<std::string, LocRef> locations_;  // of the nodes that make values, by their names

 private:
  struct Argument {
    std::string_view name, tag;
    Json value;
  };
  void read_node(const Json& json, Node& node);
  void read_known(const Schema& schema, const std::vector<Argument>& arguments, Node& node);
  void read_unknown(const std::vector<Argument>& arguments, Node& node);
  void add_operands(const std::vector<std::string_view>& names, Node& node);
  void read_output(const Json& output, Node& node);
  void splice(const Json& outputs, Node& node);
  void look_at_memory(Node& node);
  void note_writes(const Schema* schema, const Node& node);

  const int depth_;  // of graphs inside graphs
  struct Looks {
    ValueId root;  // the value whose memory it shares
    bool whole;    // it is that value, element by element: only in-place calls lie between
  };
  std::unordered_map<ValueId, Looks> looks_at_;
  std::map<std::string, std::string> decomposed_;  // operator -> who says it in others
};

// The subgraph of a control flow operator: all inputs and outputs are its operands and results. Throws pt2.nesting.
Graph read_region(const Json& graph, std::string name, const ProgramSource& source, int depth);

}  // namespace tosaic
