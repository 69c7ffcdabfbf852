// SPDX-License-Identifier: Apache-2.0
// Which nodes of a program a target takes, asked in memory, before anything is compiled and without samples: integer
// targets are asked about the plan's types on nominal scales. What only samples tell (operands of unlike ranges, waves
// that quantised values cannot follow) may still leave a node outside.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "partition/verdict.h"
#include "pipeline/normal_form.h"
#include "quantise/quantise.h"

namespace tosaic {

struct SupportQuestion {
  tosa::Spec spec;
  bool integer = false;           // floats become integers first; PT2E's integers stay so wherever the target has any
  QuantiseOptions quantise = {};  // how; `wide_inside` follows from the specification
  bool keeps_quantised_weights = false;  // of a program that stays floats, as FormFor says it
  WeightQuantisation weight_quantisation = {};
  bool quantised_io = false;
};

// Answers about one program. What the questions have in common is done once: keep it to ask about several targets.
class Supports {
 public:
  explicit Supports(Graph exported);
  // The program at some sizes, and the nodes of the exported one, which is for any.
  Supports(Graph at_sizes, std::vector<ExportedNode> nodes);
  // One verdict per exported node, in the program's order. Errors: what `normalise` refuses; plan.*, for what the user
  // decides.
  Result<std::vector<Verdict>> about(const SupportQuestion& question);

 private:
  struct Kind {  // of targets, which are asked about one form of the program
    bool integer, folded, wide_inside, takes_loops, per_channel, quantised_io;
    Scheme scheme;
    std::uint64_t most_weight_bytes;
    std::string quantised_for;  // the specification, where its branches and loops are quantised
    std::string weights;        // weight_form()
    bool operator==(const Kind&) const = default;
  };
  struct Form {
    Kind kind;
    Result<Graph> graph;
    std::unique_ptr<Placer> placer;
  };
  struct Answer {
    const Form* form;
    std::string spec;
    const tosa::Product* product;
    std::vector<Verdict> verdicts;
  };
  const Result<Graph>& normalised(const SupportQuestion& question);
  // What the question's device holds, where some weight is larger; else 0: all devices are asked about one graph.
  std::uint64_t most_weight_bytes(const SupportQuestion& question) const;
  Result<Graph> typed(const SupportQuestion& question);
  const Form& form_of(const SupportQuestion& question);
  Result<std::vector<Verdict>> about_decided(const SupportQuestion& question);

  Graph exported_;
  std::vector<ExportedNode> nodes_;
  bool has_conversions_ = false;  // PT2E's, which float targets keep as arithmetic
  // By how: PT2E's conversions are folded; loops stay, in 32 bits; the most bytes of a weight, and its form.
  std::map<std::string, std::optional<Result<Graph>>> normalised_;
  std::deque<Form> forms_;
  std::deque<Answer> answers_;
};

}  // namespace tosaic
