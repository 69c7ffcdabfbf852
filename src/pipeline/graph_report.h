// SPDX-License-Identifier: Apache-2.0
// What somebody wants to see of a program on its way through the stages: graphs as text, the ones that a rewrite
// changed, what became of one node, and files to look at. There is one only where somebody asks: comparing graphs takes
// time.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/rewrite_trace.h"

namespace tosaic {

struct GraphReportOptions {
  std::vector<std::string> print_after;  // "tidy", "tidy/merge_rescales", and `list_of_names`
  std::string trace_node;                // the name of a node or value; empty: of none
  std::string dump_dir;                  // a folder for files; empty: none
  bool empty() const { return print_after.empty() && trace_node.empty() && dump_dir.empty(); }
};

// In place of a name: the names of all that the program goes through.
inline constexpr std::string_view list_of_names = "list";

class GraphReport : public RewriteTrace {
 public:
  // `folder`: of this program in the folder for files, where there are several.
  explicit GraphReport(GraphReportOptions wanted, const std::string& folder = "");

  void rewrite(std::string_view stage, std::string_view name, Graph& graph,
               const std::function<void()>& apply) override;
  void made(std::string_view stage, const Graph& graph) override;
  void made_part(std::string_view stage, const Graph& part) override;

  // So far. Error: file.unwritable and the like.
  const Status& written() const { return written_; }
  // All of it, at the end: with what never came, or changed nothing.
  std::string text();

 private:
  // A step by its name; a stage is one, too.
  struct Step {
    std::string name;
    std::size_t runs = 0, changes = 0;
  };
  bool wants(std::string_view name) const;
  Step& step(const std::string& name);
  void follow(const std::string& step, const std::vector<std::string>& before, const std::vector<std::string>& after);
  void end_stage();
  void dump(const std::string& step, const Graph& graph);
  std::string list() const;

  GraphReportOptions wanted_;
  std::vector<Step> steps_;  // in the order in which they were met
  std::string text_;
  // Of the followed node: its lines as they were told last, and what the graphs of the stage that just ended say of it.
  std::vector<std::string> known_, at_end_;
  std::string ended_;
  std::vector<std::string> names_;  // of the program that was read, to tell which ones are near
  std::size_t files_ = 0;
  Status written_;
};

}  // namespace tosaic
