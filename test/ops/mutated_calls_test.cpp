// SPDX-License-Identifier: Apache-2.0
// Bad calls must be refused, never crash: every call of every domain, with one operand's shape or one argument
// changed at a time. What the mutated call means does not matter; it is lowered or refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops/domain.h"

namespace tosaic::domain {
namespace {

struct Given {
  std::vector<std::optional<TensorType>> operands;
  Attrs attrs;
};

Given given(const Case& c) {
  Given g;
  for (const SchemaArgument& formal : c.schema->arguments) {
    const Argument* found = nullptr;
    for (const Argument& a : c.arguments)
      if (a.name == formal.name) found = &a;
    if (!formal.is_tensor()) {
      if (found && !found->is_tensor) g.attrs.set(formal.name, found->literal);
      continue;
    }
    if (!found || found->tensors.empty()) {
      if (!formal.is_tensor_list()) g.operands.push_back(std::nullopt);
      continue;
    }
    for (const auto& t : found->tensors) {
      if (!t) {
        g.operands.push_back(std::nullopt);
        continue;
      }
      const DType dtype = t->kind == "b" ? DType::boolean : t->kind == "i" || t->kind == "l" ? DType::i32 : DType::f32;
      g.operands.push_back(TensorType{dtype, Shape(t->shape), {}});
    }
  }
  return g;
}

// Lowered, or refused with a quantised value and a message; anything else ends the test program.
void lower_or_refuse(const std::string& op, const Given& g) {
  Graph graph;
  Builder builder(graph);
  std::vector<std::optional<Val>> operands;
  for (const auto& type : g.operands) {
    if (!type) {
      operands.push_back(std::nullopt);
      continue;
    }
    const ValueId id = graph.add_value(fmt::format("in.{}", operands.size()), *type);
    graph.inputs.push_back(id);
    operands.emplace_back(Val(&builder, id));
  }
  try {
    for (Val v : lower_call(builder, Operator(op), std::move(operands), g.attrs, {})) graph.outputs.push_back(v.id());
    auto sound = verify(graph);
    EXPECT_TRUE(sound.ok()) << op << ": " << sound.error().message;
  } catch (const Refusal& refusal) {
    EXPECT_FALSE(refusal.why.code.empty()) << op;
    EXPECT_FALSE(refusal.why.message.empty()) << op;
  }
}

std::vector<Attr> others(const Attr& attr) {
  if (std::holds_alternative<std::int64_t>(attr))
    return {std::int64_t{0}, std::int64_t{-1}, std::int64_t{-9}, std::int64_t{9}, std::monostate{}};
  if (std::holds_alternative<double>(attr)) return {0.0, -1.0, 1e30, std::int64_t{3}};
  if (const auto* b = std::get_if<bool>(&attr)) return {!*b, std::monostate{}};
  if (std::holds_alternative<std::string>(attr)) return {std::string("nonsense"), std::string()};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attr)) {
    std::vector<Attr> result{std::vector<std::int64_t>{},
                             std::vector<std::int64_t>(list->size(), 0),
                             std::vector<std::int64_t>(list->size(), -9),
                             std::vector<std::int64_t>(list->size(), 9),
                             std::vector<std::int64_t>(list->size() + 1, 1),
                             std::string("s0")};
    return result;
  }
  return {};
}

const std::vector<Shape> shapes{{}, {0}, {1}, {7}, {2, 3}, {0, 4}, {1, 1, 1}, {2, 3, 4, 5}, {1, 2, 1, 2, 1, 2}};

TEST(MutatedCalls, are_lowered_or_refused) {
  std::size_t calls = 0;
  for (const auto& op : all_aten())
    for (auto text : op.op.domain) {
      auto parsed = parse(op, text);
      ASSERT_TRUE(parsed.ok()) << parsed.error().message;
      SCOPED_TRACE(fmt::format("{}: {}", op.file, text));
      const Given whole = given(*parsed);
      const std::string name = parsed->schema->full_name();
      auto attempt = [&](const Given& g) {
        lower_or_refuse(name, g);
        ++calls;
      };
      for (std::size_t i = 0; i < whole.operands.size(); ++i) {
        if (!whole.operands[i]) continue;
        for (const Shape& shape : shapes) {
          Given g = whole;
          g.operands[i]->shape = shape;
          attempt(g);
        }
        for (DType dtype : {DType::boolean, DType::i32, DType::i8, DType::f32}) {
          Given g = whole;
          g.operands[i]->dtype = dtype;
          attempt(g);
        }
        Given missing = whole;
        missing.operands[i] = std::nullopt;
        attempt(missing);
      }
      for (const auto& [argument, value] : whole.attrs)
        for (const Attr& other : others(value)) {
          Given g = whole;
          g.attrs.set(argument, other);
          attempt(g);
        }
      Given fewer = whole;
      if (!fewer.operands.empty()) fewer.operands.pop_back();
      attempt(fewer);
    }
  EXPECT_GT(calls, 20000u);
}

}  // namespace
}  // namespace tosaic::domain
