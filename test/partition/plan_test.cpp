// SPDX-License-Identifier: Apache-2.0
// The quantisation plan: from the program alone, printed and read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/aten_operators.h"
#include "partition/graph_text.h"
#include "quantise/plan.h"

namespace tosaic {
namespace {

Expanded program_of(const std::string& text) {
  auto program = expanded(graph_of(text));
  EXPECT_TRUE(program.ok());
  return std::move(*program);
}

const char* const net = R"(graph @main(%x: 1x2x4x4xf32, %i: 2xi32) -> (%relu, %turned, %picked, %soft) {
  %w: 2x3x1x1xf32 = constant [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  %up: 1x3x4x4xf32 = aten.conv_transpose2d.input(%x, %w, none)
  %relu: 1x3x4x4xf32 = aten.relu.default(%up)
  %turned: 1x4x4x3xf32 = aten.permute.default(%relu) {dims=[0, 2, 3, 1]}
  %table: 3x2xf32 = constant [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
  %picked: 2x2xf32 = aten.embedding.default(%table, %i)
  %soft: 2x2xf32 = aten.softmax.int(%picked) {dim=1}
})";

TEST(QuantisationPlan, as_text) {
  const Expanded program = program_of(net);
  const QuantisationPlan plan = plan_quantisation(program, {});
  const std::string text = print(plan, program.graph);
  EXPECT_TRUE(text.starts_with(R"(%x i8 affine
aten.conv_transpose2d.input %up accumulate
%up i8 affine or-i16 held
%w i8 symmetric per dim 1 in aten.conv_transpose2d.input %up
aten.relu.default %relu transparent
%relu i8 affine or-i16 in [0, inf] as %up
aten.permute.default %turned transparent
%turned i8 affine or-i16 in [0, inf] as %up
)")) << text;
  EXPECT_NE(text.find("\n%table i8 affine as %picked\n"), std::string::npos) << text;
  EXPECT_NE(text.find("i16 symmetric"), std::string::npos) << text;
  auto read = parse_plan(text, program);
  ASSERT_TRUE(read.ok()) << render(read.error(), false);
  EXPECT_EQ(print(*read, program.graph), text);
}

TEST(QuantisationPlan, refuses_what_is_of_another_program) {
  const Expanded program = program_of(net);
  const std::string text = print(plan_quantisation(program, {}), program.graph);
  const auto code = [&](std::string changed) {
    auto read = parse_plan(changed, program);
    return read.ok() ? "" : read.error().code;
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const auto at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? changed : changed.replace(at, from.size(), to);
  };
  EXPECT_EQ(code(with("%x i8", "%y i8")), "plan.unknown-tensor");
  EXPECT_EQ(code(with("%relu transparent", "%relu sum")), "plan.not-this-program");
  EXPECT_EQ(code(with("aten.relu.default", "aten.gelu.default")), "plan.not-this-program");
  EXPECT_EQ(code(with("%relu i8 affine", "%relu i4 affine")), "plan.syntax");
  EXPECT_EQ(code(with("%up i8 affine or-i16 held\n", "")), "plan.incomplete");
  EXPECT_EQ(code(with("per dim 1", "per dim 9")), "plan.syntax");
  EXPECT_EQ(code(with("held", "hold")), "plan.syntax");
  EXPECT_EQ(code(with("in [0, inf] as", "in [0, 6] as")), "plan.not-this-program");
  EXPECT_EQ(code(with("%x i8 affine", "%x i8 affine in [0, 1]")), "plan.not-this-program");
}

TEST(QuantisationPlan, bounds_follow_from_operators) {
  const Expanded program =
      program_of(R"(graph @main(%x: 1x4x4xf32) -> (%gate, %both, %soft, %six, %far, %angle, %left, %right) {
    %s: 1x4x4xf32 = aten.sigmoid.default(%x)
    %t: 1x4x4xf32 = aten.tanh.default(%x)
    %gate: 1x4x4xf32 = aten.mul.Tensor(%s, %t)
    %both: 2x4x4xf32 = aten.cat.default(%s, %t)
    %soft: 1x4x4xf32 = aten.softmax.int(%x) {dim=2}
    %six: 1x4x4xf32 = aten.hardtanh.default(%x) {min_val=0.0, max_val=6.0}
    %relu: 1x4x4xf32 = aten.relu.default(%x)
    %wave: 1x4x4xf32 = aten.cos.default(%relu)
    %turned: 1x4x4xf32 = aten.permute.default(%wave) {dims=[0, 2, 1]}
    %square: 1x4x4xf32 = aten.mul.Tensor(%x, %x)
    %far: 1x4x4xf32 = aten.add.Tensor(%square, %turned)
    %angle: 1x4x4xf32 = aten.atan.default(%relu)
    %left: 1x2x4xf32, %right: 1x2x4xf32 = aten.split.Tensor(%t) {split_size=2, dim=1}
  })");
  const QuantisationPlan plan = plan_quantisation(program, {});
  const auto of = [&](std::string_view name) {
    for (ValueId v = 0; v < program.graph.values.size(); ++v)
      if (program.graph[v].name == name) return plan.bounds[v];
    return tosa::Bounds{0, -1};
  };
  const double far = tosa::Bounds{}.highest;
  EXPECT_EQ(of("s"), (tosa::Bounds{0, 1}));
  EXPECT_EQ(of("t"), (tosa::Bounds{-1, 1}));
  EXPECT_EQ(of("gate"), (tosa::Bounds{-1, 1}));
  EXPECT_EQ(of("both"), (tosa::Bounds{-1, 1}));
  EXPECT_EQ(of("soft"), (tosa::Bounds{0, 1}));
  EXPECT_EQ(of("six"), (tosa::Bounds{0, 6}));
  EXPECT_EQ(of("relu"), (tosa::Bounds{0, far}));
  EXPECT_EQ(of("turned"), (tosa::Bounds{-1, 1}));
  EXPECT_EQ(of("square"), (tosa::Bounds{0, far}));
  EXPECT_EQ(of("far"), (tosa::Bounds{-1, far}));
  EXPECT_GE(of("angle").lowest, -1.5708);
  EXPECT_LE(of("angle").highest, 1.5708);
  EXPECT_EQ(of("left"), (tosa::Bounds{-1, 1}));
  EXPECT_EQ(of("right"), (tosa::Bounds{-1, 1}));
  EXPECT_EQ(of("x"), tosa::Bounds{});
  const std::string text = print(plan, program.graph);
  EXPECT_NE(text.find("%soft i8 affine or-i16 in [0, 1]\n"), std::string::npos) << text;
  auto read = parse_plan(text, program);
  ASSERT_TRUE(read.ok()) << render(read.error(), false);
  EXPECT_EQ(print(*read, program.graph), text);
}

// Composites of composites say them as well.
TEST(QuantisationPlan, bounds_of_what_composites_hold) {
  const Expanded program = program_of(R"(graph @main(%q: 1x2x4x8xf32) -> (%y) {
    %y: 1x2x4x8xf32 = aten.scaled_dot_product_attention.default(%q, %q, %q, none)
  })");
  const std::vector<tosa::Bounds> bounds = known_bounds(program);
  EXPECT_EQ(std::count(bounds.begin(), bounds.end(), tosa::Bounds{0, 1}), 1);
}

// 16 bits reach half as far again as the samples, but no further than what there is.
TEST(QuantisationPlan, no_codes_beyond_the_bounds) {
  const Expanded program = program_of(R"(graph @main(%x: 4xf32) -> (%y) {
    %y: 4xf32 = aten.tanh.default(%x)
  })");
  const QuantisationPlan plan = plan_quantisation(program, {.scheme = Scheme::int16x8});
  Graph graph = program.graph;
  give_types(graph, plan, std::vector<Range>(graph.values.size(), Range{-0.9, 0.9}),
             std::vector<char>(graph.values.size(), 0));
  EXPECT_NEAR(graph[graph.inputs[0]].type.scales->scale[0], 0.9 * 1.5 / 32767, 1e-9);
  const double scale = graph[graph.outputs[0]].type.scales->scale[0];
  EXPECT_GE(scale * 32767, 1.0);
  EXPECT_LT(scale * 32766, 1.0);
  EXPECT_EQ(std::ldexp(scale, 29), 16385);  // 16 bits hold it
}

TEST(QuantisationPlan, refuses_lines_that_say_too_much_or_too_little) {
  const Expanded program = program_of(net);
  const std::string text = print(plan_quantisation(program, {}), program.graph);
  const auto said = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    const auto at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    PlanRequest request;
    if (const Status status = add_plan_text(request, "net.plan", changed.replace(at, from.size(), to)); !status.ok())
      return status.error().code + ": " + status.error().message;
    const auto decisions = decide(program, request, {});
    if (decisions.ok()) return std::string();
    EXPECT_FALSE(decisions.error().internal);
    return decisions.error().code + ": " + decisions.error().message;
  };
  const std::string weight = "%w i8 symmetric per dim 1 in aten.conv_transpose2d.input %up\n";
  EXPECT_EQ(said("%x i8 affine\n", ""), "plan.incomplete: the plan does not mention %x");
  EXPECT_EQ(said("%x i8 affine\n", "%x i8 affine\n%x float\n"), "plan.syntax: line 1 has spoken of %x already");
  EXPECT_EQ(said("%up accumulate\n", "%up accumulate float\naten.conv_transpose2d.input %up accumulate\n"),
            "plan.syntax: line 2 has spoken of aten.conv_transpose2d.input %up already");
  EXPECT_EQ(said("%x i8 affine\n", "%x float please\n"),
            "plan.syntax: column 10: 'please' is too much: the line ends before it");
  EXPECT_EQ(said("%x i8 affine\n", "%x i8 affine\n%i i8 affine\n"),
            "plan.not-this-program: %i is 2xi32: there is nothing to quantise");
  EXPECT_EQ(said("%x i8 affine\n", "%x i8 affine\n%w float\n"),
            "plan.not-this-program: %w is a constant: it is quantised 'as' a tensor or 'in' a call");
  EXPECT_EQ(said(weight, ""), "plan.impossible: a line is missing");
  EXPECT_EQ(said(weight, weight + weight), "plan.syntax: line 4 has spoken of %w already");
  EXPECT_EQ(said("%w i8", "%w i4"), "");  // 4 bits for one weight
  EXPECT_EQ(said("%w i8", "%w i5"),
            "plan.syntax: column 4: 'i5 symmetric' is none of: float, i8 affine, i16 symmetric, "
            "i8 symmetric and i4 symmetric (of a weight)");
  EXPECT_EQ(said("%w i8", "%w i16"), "plan.impossible: line 4: %w has 8 bits, as what it is multiplied with");
  EXPECT_EQ(said("per dim 1", "per dim one"),
            "plan.syntax: column 21: 'dim one' is no dim: 'per dim 0' has a scale per index of dim 0");
  EXPECT_EQ(said("%table i8 affine as %picked\n", ""), "plan.impossible: a line is missing");
  EXPECT_EQ(said("%table i8 affine as %picked\n", "%table i8 affine as %picked\n%table i8 affine as %picked\n"),
            "plan.impossible: the line does not follow from the rest of the plan");
}

// Words and lines left out, doubled and exchanged: an error with a quantised value of its own, or a plan.
TEST(QuantisationPlan, whatever_the_text_says) {
  const Expanded program = program_of(net);
  const std::string text = print(plan_quantisation(program, {}), program.graph);
  std::vector<std::string> words;  // with what separates them
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size() - 1);
    words.push_back(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  const auto check = [&](const std::vector<std::string>& changed) {
    std::string whole;
    for (const std::string& word : changed) whole += word;
    PlanRequest request;
    const Status read = add_plan_text(request, "net.plan", whole);
    const Status status = read.ok() ? [&]() -> Status {
      TOSAIC_TRY(const Decisions decisions, decide(program, request, {}));
      return check_decisions(program, decisions, {}, tosa::Spec::everything());
    }()
        : read;
    if (status.ok()) return;
    EXPECT_TRUE(status.error().code.starts_with("plan.")) << whole << render(status.error(), false);
    EXPECT_FALSE(status.error().internal) << whole;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    auto changed = words;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    check(changed);
    for (const std::string word : {"%x ", "%w ", "float ", "-1 ", "as ", "\n", "\"", "99999999999999999999 "}) {
      changed = words;
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), word);
      check(changed);
      changed[i + 1].clear();
      check(changed);
    }
  }
}

// Two convolutions with a relu between, one after the other in two modules.
const char* const chain = R"(graph @main(%x: 1x2x4x4xf32) -> (%b) {
  %w: 2x2x1x1xf32 = constant [1.0, 2.0, 3.0, 4.0]
  %a: 1x2x4x4xf32 = aten.conv2d.default(%x, %w, none) loc("net.py":3 "" in "stem.conv" "Conv2d" from "aten.conv2d.default" as "conv2d")
  %r: 1x2x4x4xf32 = aten.relu.default(%a) loc("net.py":4 "" in "stem.act@1" "ReLU" from "aten.relu.default" as "relu")
  %b: 1x2x4x4xf32 = aten.conv2d.default(%r, %w, none) loc("net.py":5 "" in "head" "Conv2d" from "aten.conv2d.default" as "conv2d_1")
})";

std::string decided_by(const std::string& lines) {
  const Expanded program = program_of(chain);
  QuantiseOptions options;
  options.exported = exported_nodes(program.graph);
  const Status read = add_plan_text(options.request, "net.plan", lines);
  if (!read.ok()) return read.error().code;
  const auto decisions = decide(program, options.request, options);
  if (!decisions.ok()) return decisions.error().code + ": " + decisions.error().help;
  return print(plan_quantisation(program, options, {}, *decisions), program.graph);
}

std::string line_of(const std::string& plan, const std::string& begin) {
  const auto at = plan.find(begin);
  return at == std::string::npos ? plan : plan.substr(at, plan.find('\n', at + 1) - at);
}

TEST(Overrides, name_modules_operators_nodes_and_lines) {
  for (const char* name : {"stem", "stem.conv", "conv2d", "%conv2d", "net.py:3", "s*.conv", "stem.con?"}) {
    const std::string plan = decided_by(std::string(name) + ": int16x8");
    EXPECT_NE(plan.find("aten.conv2d.default %a accumulate int16x8\n"), std::string::npos) << name << "\n" << plan;
    EXPECT_NE(plan.find("aten.conv2d.default %b accumulate\n"), std::string::npos) << name << "\n" << plan;
  }
  for (const char* name : {"aten.conv2d", "aten.conv2d.default", "*", "net.py"})
    EXPECT_NE(decided_by(std::string(name) + ": float").find("%b accumulate float\n"), std::string::npos) << name;
  EXPECT_NE(decided_by("stem.act: float").find("%r transparent float\n"), std::string::npos);
  // Names begin and end where modules do.
  EXPECT_TRUE(decided_by("ste: float").starts_with("plan.names-nothing"));
  EXPECT_TRUE(decided_by("em.conv: float").starts_with("plan.names-nothing"));
  EXPECT_EQ(decided_by("steem: float"), "plan.names-nothing: did you mean stem?");
}

TEST(Overrides, of_which_the_last_wins) {
  EXPECT_EQ(line_of(decided_by("*: int16x8\nhead: float\nconv2d_1: int8\n"), "aten.conv2d.default %b"),
            "aten.conv2d.default %b accumulate int8");
}

TEST(Overrides, reach_operands_that_nothing_else_computes_with) {
  // The relu's quantised values are the head's alone: the first convolution writes 16 bits.
  const std::string plan = decided_by("head: int16x8");
  EXPECT_EQ(line_of(plan, "\n%a "), "\n%a i16 symmetric held");
  EXPECT_TRUE(plan.starts_with("%x i8 affine\n"));
  // Not where somebody decides about what makes them.
  EXPECT_EQ(line_of(decided_by("head: int16x8\nstem: int8"), "\n%r "), "\n%r i8 affine in [0, inf] as %a");
}

TEST(Overrides, put_a_rescaled_copy_before_narrower_convolutions) {
  const Expanded program = program_of(chain);
  QuantiseOptions options;
  options.exported = exported_nodes(program.graph);
  ASSERT_TRUE(add_plan_text(options.request, "", "stem: int16x8").ok());
  const auto decisions = decide(program, options.request, options);
  ASSERT_TRUE(decisions.ok());
  const QuantisationPlan plan = plan_quantisation(program, options, {}, *decisions);
  ASSERT_EQ(plan.width_changes.size(), 1u);
  EXPECT_EQ(plan.width_changes[0], (WidthChange{2, 0, false}));
  const Graph typed = on_nominal_scales(program.graph, plan);
  const auto copy =
      std::find_if(typed.nodes.begin(), typed.nodes.end(), [](const Node& n) { return n.op == aten::op::clone; });
  ASSERT_NE(copy, typed.nodes.end());
  EXPECT_EQ(typed[copy->inputs[0]].type.dtype, DType::i16);
  EXPECT_EQ(typed[copy->outputs[0]].type.dtype, DType::i8);
}

// Rows of unlike size are scaled when the samples show them: the norm then has other pieces than its plan.
TEST(QuantisationPlan, holds_for_what_is_left_of_scaled_rows) {
  const Graph norm = graph_of(R"(graph @main(%x: 4x4xf32) -> (%y) {
  %squares: 4x4xf32 = aten.mul.Tensor(%x, %x)
  %size: 4x1xf32 = aten.mean.dim(%squares) {dim=[-1], keepdim=true}
  %factor: 4x1xf32 = aten.rsqrt.default(%size)
  %rows: 4x4xf32 = aten.mul.Tensor(%x, %factor)
  %weight: 4xf32 = constant [1.0, 2.0, 3.0, 4.0]
  %scaled: 4x4xf32 = aten.mul.Tensor(%rows, %weight)
  %y: 4x4xf32 = aten.add.Tensor(%scaled, %weight)
})");
  const Expanded program = program_of(print(norm, ConstantText::all));
  Decisions decisions{std::vector<Form>(program.graph.nodes.size(), Form::unset),
                      std::vector<Form>(program.graph.values.size(), Form::unset),
                      std::vector<const Override*>(program.graph.nodes.size(), nullptr),
                      {}};
  for (std::size_t n = 0; n < program.graph.nodes.size(); ++n)
    for (const Operator op : {aten::op::mean_dim, aten::op::conv1d})
      if (program.graph.nodes[n].op == op) decisions.of_node[n] = Form::floating;
  QuantiseOptions options;
  const std::string plan = print(plan_quantisation(program, options, {}, decisions), program.graph);
  ASSERT_TRUE(add_plan_text(options.request, "rows.plan", plan).ok());
  std::vector<float> x;
  for (float row : {1e-3f, 1.f, 1e-2f, 0.1f})
    for (float element : {1.f, -0.5f, 0.3f, 0.9f}) x.push_back(row * element);
  std::vector<Diagnostic> said;
  const auto quantised = quantise(norm, {{{{DType::f32, {4, 4}, {}}, Bytes::of(x)}}}, options,
                                  [&](Diagnostic d) { said.push_back(std::move(d)); });
  ASSERT_TRUE(quantised.ok()) << render(quantised.error(), false);
  for (const Node& node : quantised->nodes)
    if (node.op == aten::op::conv1d) { EXPECT_FALSE((*quantised)[node.outputs[0]].type.quantised()); }
  const auto lost =
      std::find_if(said.begin(), said.end(), [](const auto& d) { return d.code == "plan.without-effect"; });
  ASSERT_NE(lost, said.end());
  EXPECT_EQ(lost->place.text, "aten.mean.dim %size sum float");
}

TEST(Overrides, with_errors_of_syntax) {
  for (const char* line : {"head", "head:", "head: in8", ": float", "scheme int4", "head: float: "})
    EXPECT_EQ(decided_by(line), "plan.syntax") << line;
  EXPECT_EQ(decided_by(std::string("PK\3\4\0\0\n", 7)), "plan.not-text");
}

}  // namespace
}  // namespace tosaic
