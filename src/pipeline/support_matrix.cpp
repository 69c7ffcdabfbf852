// SPDX-License-Identifier: Apache-2.0
#include "pipeline/support_matrix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "base/parallel.h"
#include "ir/tensor.h"
#include "ops/domain.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

// As delegates see PyTorch's types.
DType narrowed(DType type) { return type == DType::i64 ? DType::i32 : type == DType::f64 ? DType::f32 : type; }

Attr narrowed(const Attr& attr) {
  const auto* type = std::get_if<DType>(&attr);
  return type ? Attr(narrowed(*type)) : attr;
}

// The call as a program of one node. Its results are what its lowering gives; where it has none, nothing is known.
Graph program_of(const domain::Case& call) {
  Graph graph;
  Node node;
  node.op = Operator(call.schema->full_name());
  auto loc = std::make_shared<Loc>();
  loc->op = node.op.text();
  loc->name = "call";
  node.loc = loc;
  std::map<std::string, std::vector<ValueId>> given;
  for (const domain::Argument& argument : call.arguments) {
    if (!argument.is_tensor) {
      if (!std::holds_alternative<std::monostate>(argument.literal))
        node.attrs.set(argument.name, narrowed(argument.literal));
      continue;
    }
    for (const auto& generator : argument.tensors) {
      if (!generator) {
        given[argument.name].push_back(no_value);
        continue;
      }
      Tensor tensor = domain::example(*generator);
      // Weights are constants in programs, whatever the domain says.
      const bool constant = generator->constant || argument.name == "weight" || argument.name == "bias";
      const ValueId v = graph.add_value(fmt::format("in.{}", graph.values.size()), tensor.type,
                                        constant ? std::move(tensor.data) : Bytes{});
      given[argument.name].push_back(v);
      if (!constant) graph.inputs.push_back(v);
    }
  }
  for (const SchemaArgument& formal : call.schema->arguments) {
    if (!formal.is_tensor()) continue;
    if (auto it = given.find(formal.name); it != given.end())
      node.inputs.insert(node.inputs.end(), it->second.begin(), it->second.end());
    else if (!formal.is_tensor_list())
      node.inputs.push_back(no_value);
  }
  std::vector<TensorType> results(1);
  if (auto trial = try_node(graph, node); trial.ok()) {
    results.clear();
    for (ValueId v : trial->results) results.push_back(trial->graph[v].type);
  }
  for (std::size_t k = 0; k < std::min(results.size(), call.results); ++k) {
    node.outputs.push_back(graph.add_value(fmt::format("out.{}", k), results[k]));
    graph.outputs.push_back(node.outputs.back());
  }
  graph.nodes.push_back(std::move(node));
  return graph;
}

// Per column the code of the reason why the call is not taken, or nothing.
Result<std::vector<std::string>> answers_to(const domain::Case& call, const std::vector<SupportColumn>& columns) {
  Supports supports(program_of(call));
  std::vector<std::string> codes;
  for (const SupportColumn& column : columns) {
    auto verdicts = supports.about(column.question);
    if (!verdicts.ok())
      codes.push_back(verdicts.error().code);
    else
      codes.push_back(verdicts->front().taken ? "" : verdicts->front().reason.code);
  }
  return codes;
}

Status add_operator(const NamedAtenOp& named, const std::vector<SupportColumn>& columns,
                    std::vector<OverloadSupport>& rows) {
  for (std::string_view text : named.op.domain) {
    TOSAIC_TRY(const domain::Case call, domain::parse(named, text));
    const std::string op = call.schema->full_name();
    auto row = std::find_if(rows.begin(), rows.end(), [&](const OverloadSupport& r) { return r.op == op; });
    if (row == rows.end()) row = rows.insert(rows.end(), {std::string(named.file), op, 0, {}});
    row->refused.resize(columns.size());
    ++row->calls;
    TOSAIC_TRY(const std::vector<std::string> codes, answers_to(call, columns));
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (!codes[c].empty()) ++row->refused[c][codes[c]];
  }
  return {};
}

std::string answer_text(const OverloadSupport& row, std::size_t column) {
  if (row.refused[column].empty()) return "taken";
  std::vector<std::string> codes;
  for (const auto& [code, count] : row.refused[column])
    codes.push_back(count == row.calls ? code : fmt::format("{} {}", count, code));
  const std::size_t taken = row.taken(column);
  return taken == 0 ? fmt::format("{}", fmt::join(codes, ", "))
                    : fmt::format("{} of {} taken, {}", taken, row.calls, fmt::join(codes, ", "));
}

}  // namespace

std::size_t OverloadSupport::taken(std::size_t column) const {
  std::size_t left = calls;
  for (const auto& [code, count] : refused[column]) left -= count;
  return left;
}

Result<std::vector<OverloadSupport>> support_matrix(const std::vector<SupportColumn>& columns) {
  const auto& operators = all_aten();
  std::vector<std::vector<OverloadSupport>> rows(operators.size());
  std::vector<Status> done(operators.size());
  in_parallel(operators.size(), 4, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) done[i] = add_operator(operators[i], columns, rows[i]);
  });
  std::vector<OverloadSupport> matrix;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    TOSAIC_CHECK(done[i]);
    std::move(rows[i].begin(), rows[i].end(), std::back_inserter(matrix));
  }
  return matrix;
}

std::string print(const std::vector<OverloadSupport>& matrix, const std::vector<SupportColumn>& columns) {
  std::string out;
  for (const OverloadSupport& row : matrix) {
    out += fmt::format("{} ({} call{})\n", row.op, row.calls, row.calls == 1 ? "" : "s");
    std::vector<std::pair<std::string, std::vector<std::string>>> answers;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string text = answer_text(row, c);
      auto same = std::find_if(answers.begin(), answers.end(), [&](const auto& a) { return a.first == text; });
      if (same == answers.end()) same = answers.insert(answers.end(), {text, {}});
      same->second.push_back(columns[c].name);
    }
    if (answers.size() == 1)
      out += fmt::format("  {}: everywhere\n", answers[0].first);
    else
      for (const auto& [text, names] : answers) out += fmt::format("  {}: {}\n", text, fmt::join(names, ", "));
  }
  return out;
}

}  // namespace tosaic
