// SPDX-License-Identifier: Apache-2.0
// COND_IF, WHILE_LOOP, VARIABLE*, CUSTOM, CONST*.
#include "ir/graph.h"
#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;

Graph parsed(const std::string& text) {
  auto graph = parse(text);
  if (!graph.ok()) {
    ADD_FAILURE() << render(graph.error(), false);
    return {};
  }
  return *graph;
}
std::string label_of(const std::string& text) {
  const Status status = tosa::verify_graph(parsed(text), tosa::Spec::everything());
  return status.ok() ? "" : status.error().code.substr(5);  // less "tosa."
}
Result<std::vector<Tensor>> run(const std::string& text, std::vector<std::vector<double>> inputs = {},
                                bool precise = false) {
  const Graph graph = parsed(text);
  TOSAIC_CHECK(tosa::verify_graph(graph, tosa::Spec::everything()));
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = graph[graph.inputs.at(i)].type;
    tensors.push_back({type, constant_bytes(type.dtype, inputs[i])});
  }
  return interp::run(graph, std::move(tensors), {.precise = precise});
}
double first(const Result<std::vector<Tensor>>& result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().code << ": " << result.error().message;
    return 0;
  }
  return element_as_double(result->at(0).type.dtype, result->at(0).data.data(), 0);
}

const std::string cond = R"(graph @main(%p: bool, %x: 2xf32, %y: 2xf32) -> (%r) {
  %r: 2xf32 = tosa.cond_if(%p, %x, %y) (
    graph @sum(%a: 2xf32, %b: 2xf32) -> (%c) {
      %c: 2xf32 = tosa.add(%a, %b)
    }
    graph @difference(%a: 2xf32, %b: 2xf32) -> (%c) {
      %c: 2xf32 = tosa.sub(%a, %b)
    }
  )
})";
std::string replaced(std::string text, const std::string& from, const std::string& to, std::size_t skip = 0) {
  std::size_t at = text.find(from);
  while (skip-- > 0) at = text.find(from, at + 1);
  if (at == std::string::npos)
    ADD_FAILURE() << from;
  else
    text.replace(at, from.size(), to);
  return text;
}

TEST(CondIf, RunsOneBody) {
  EXPECT_EQ(first(run(cond, {{1}, {5, 6}, {3, 3}})), 8);
  EXPECT_EQ(first(run(cond, {{0}, {5, 6}, {3, 3}})), 2);
  EXPECT_EQ(first(run(cond, {{1}, {5, 6}, {3, 3}}, true)), 8);
}

TEST(CondIf, Rules) {
  EXPECT_EQ(label_of(cond), "");
  EXPECT_EQ(label_of(replaced(cond, "%p: bool", "%p: 2xbool")), "cond_if.condition-size");
  EXPECT_EQ(label_of(replaced(cond, "%p: bool", "%p: i8")), "cond_if.type");
  EXPECT_EQ(label_of(replaced(cond, "%b: 2xf32", "%b: 3xf32")), "cond_if.then-inputs");
  EXPECT_EQ(label_of(replaced(cond, ", %b: 2xf32) -> (%c) {\n      %c: 2xf32 = tosa.sub(%a, %b)",
                              ") -> (%c) {\n      %c: 2xf32 = tosa.sub(%a, %a)")),
            "cond_if.else-inputs");
  EXPECT_EQ(label_of(replaced(cond, "-> (%c)", "-> (%c, %c)")), "cond_if.then-outputs");
  EXPECT_EQ(label_of(replaced(cond, "-> (%c)", "-> ()", 1)), "cond_if.else-outputs");
  EXPECT_EQ((OneNode{"cond_if", {in(boolean, {})}, {}}).verify(), "cond_if.regions");
  const Status status = tosa::verify_graph(parsed(cond), tosa::Spec({tosa::Feature::pro_fp}));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "tosa.cond_if.type");
}

// Sum of i for i = n .. 1.
const std::string loop = R"(graph @main(%n: 1xi32, %s: 1xi32) -> (%sum) {
  %left: 1xi32, %sum: 1xi32 = tosa.while_loop(%n, %s) (
    graph @more(%i: 1xi32, %t: 1xi32) -> (%c) {
      %zero: 1xi32 = constant [0]
      %c: 1xbool = tosa.greater(%i, %zero)
    }
    graph @step(%i: 1xi32, %t: 1xi32) -> (%j, %u) {
      %one: 1xi32 = constant [1]
      %j: 1xi32 = tosa.sub(%i, %one)
      %u: 1xi32 = tosa.add(%t, %i)
    }
  )
})";

TEST(WhileLoop, RunsUntilFalse) {
  EXPECT_EQ(first(run(loop, {{100}, {0}})), 5050);
  EXPECT_EQ(first(run(loop, {{0}, {7}})), 7);  // not once
}

TEST(WhileLoop, ErrorsOfABodySurface) {
  const auto result = run(loop, {{2}, {2147483647}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "tosa.unpredictable");
}

TEST(WhileLoop, Rules) {
  EXPECT_EQ(label_of(loop), "");
  EXPECT_EQ(label_of(replaced(loop, "%left: 1xi32, %sum: 1xi32", "%sum: 1xi32")), "while_loop.outputs");
  EXPECT_EQ(label_of(replaced(loop, "%left: 1xi32", "%left: 2xi32")), "while_loop.outputs");
  EXPECT_EQ(label_of(replaced(loop, "@more(%i: 1xi32, %t: 1xi32)", "@more(%i: 1xi32)")), "while_loop.cond-inputs");
  EXPECT_EQ(label_of(replaced(loop, "@step(%i: 1xi32, %t: 1xi32)", "@step(%i: 1xi32, %t: 1xi32, %v: f32)")),
            "while_loop.body-inputs");
  EXPECT_EQ(label_of(replaced(loop, "-> (%j, %u)", "-> (%j)")), "while_loop.body-outputs");
  EXPECT_EQ(label_of(replaced(loop, "-> (%c)", "-> (%c, %c)")), "while_loop.cond-output-size");
  EXPECT_EQ(label_of(replaced(loop, "-> (%c)", "-> (%zero)")), "while_loop.cond-output-type");
  EXPECT_EQ((OneNode{"while_loop", {in(i8, {})}, {}}).verify(), "while_loop.regions");
}

TEST(Variable, KeepsItsContentWithinARun) {
  const std::string text = R"(graph @main(%x: 2xf32) -> (%after, %before) {
    %start: 2xf32 = constant [1.5, 2.0]
    tosa.variable(%start) {name="v", var_shape=[2], type=f32}
    %before: 2xf32 = tosa.variable_read() {name="v"}
    %sum: 2xf32 = tosa.add(%before, %x)
    tosa.variable_write(%sum) {name="v"}
    %after: 2xf32 = tosa.variable_read() {name="v"}
  })";
  for (bool precise : {false, true}) {
    const auto result = run(text, {{10, 20}}, precise);
    EXPECT_EQ(first(result), 11.5);
    EXPECT_EQ(element_as_double(precise ? f64 : f32, result->at(1).data.data(), 0), 1.5);
  }
  const Status status = tosa::verify_graph(parsed(text), tosa::Spec({tosa::Feature::pro_fp}));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "tosa.variable.type");
}

TEST(Variable, BodiesShareIt) {
  const std::string text = R"(graph @main(%p: bool) -> (%r) {
    tosa.variable() {name="v", var_shape=[1], type=i8}
    %r: 1xi8 = tosa.cond_if(%p) (
      graph @t() -> (%y) {
        %c: 1xi8 = constant [7]
        tosa.variable_write(%c) {name="v"}
        %y: 1xi8 = tosa.variable_read() {name="v"}
      }
      graph @e() -> (%y) {
        %y: 1xi8 = tosa.variable_read() {name="v"}
      }
    )
  })";
  EXPECT_EQ(first(run(text, {{1}})), 7);
  const auto unwritten = run(text, {{0}});
  ASSERT_FALSE(unwritten.ok());
  EXPECT_EQ(unwritten.error().code, "tosa.unpredictable");
}

TEST(Variable, Rules) {
  const Attrs attrs{{"name", std::string("v")}, {"var_shape", std::vector<std::int64_t>{2}}, {"type", i8}};
  auto label = [&](auto change, std::vector<Operand> operands = {}) {
    Attrs a = attrs;
    change(a);
    return OneNode{"variable", std::move(operands), a}.verify();
  };
  EXPECT_EQ(label([](Attrs&) {}), "");
  EXPECT_EQ(label([](Attrs& a) { a.set("var_shape", std::vector<std::int64_t>{0}); }), "variable.shape");
  EXPECT_EQ(label([](Attrs& a) { a.set("type", i32); }), "variable.type");
  EXPECT_EQ(label([](Attrs&) {}, {in(i8, {3})}), "variable.initial-value");
  EXPECT_EQ(label([](Attrs&) {}, {in(i8, {2}), in(i8, {2})}), "variable.initial-value");
  for (const char* body : {"%y: 2xi8 = tosa.variable_read() {name=\"w\"}",      // never declared
                           "%y: 3xi8 = tosa.variable_read() {name=\"v\"}",      // another shape
                           "%y: 2xf32 = tosa.variable_read() {name=\"v\"}"}) {  // another dtype
    const auto result = run(std::string("graph @g() -> (%y) { %i: 2xi8 = constant [1, 2]\ntosa.variable(%i) "
                                        "{name=\"v\", var_shape=[2], type=i8}\n") +
                            body + "}");
    ASSERT_FALSE(result.ok()) << body;
    EXPECT_EQ(result.error().code, "tosa.unpredictable") << body;
  }
}

TEST(Custom, IsRefusedWhenRun) {
  const auto result = run(R"(graph @g(%x: 2xi8) -> (%y) {
    %y: 2xi8 = tosa.custom(%x) {operator_name="mine", domain_name="here", implementation_attrs=""}
  })",
                          {{1, 2}});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "run.custom-operator");
}

TEST(Const, IsNoNode) {
  const auto result = run("graph @g() -> (%y) { %y: 2xi8 = tosa.const() }");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, "run.constant-node");
}

}  // namespace
}  // namespace tosaic
