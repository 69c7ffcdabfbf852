// SPDX-License-Identifier: Apache-2.0
// Handles of operators: one for each name, with the parts of the name.
#include "ir/operator.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ir/aten_operators.h"
#include "ir/program_operators.h"
#include "ir/tosa_operators.h"

namespace tosaic::test {
namespace {

TEST(Operator, IsOneForEachName) {
  EXPECT_EQ(Operator("aten.add.Tensor"), aten::op::add_Tensor);
  EXPECT_EQ(Operator("tosa.conv2d"), tosa::op::conv2d);
  EXPECT_EQ(Operator("_operator.add"), python::op::add);
  EXPECT_EQ(Operator("delegate"), op::delegate);
  EXPECT_EQ(Operator("mine.frobnicate.default"), Operator(std::string("mine.frobnicate.default")));
  EXPECT_NE(aten::op::add_Tensor, aten::op::add_Scalar);
  EXPECT_TRUE(Operator().none());
  EXPECT_EQ(Operator(""), Operator());
}

TEST(Operator, KnowsThePartsOfItsName) {
  const Operator add = aten::op::add_Tensor;
  EXPECT_EQ(add.space(), "aten");
  EXPECT_EQ(add.base(), "add");
  EXPECT_EQ(add.overload(), "Tensor");
  EXPECT_TRUE(add.overload_of(aten::op::add_Scalar));
  EXPECT_FALSE(add.overload_of(tosa::op::add));
  EXPECT_EQ(tosa::op::conv2d.base(), "conv2d");
  EXPECT_EQ(tosa::op::conv2d.overload(), "");
  EXPECT_EQ(op::delegate.space(), "");
  for (const char* odd : {".", "..", "a.", ".b", "a..b", "a.b.c.d", "no dot"}) EXPECT_EQ(Operator(odd).name(), odd);
  EXPECT_EQ(Operator("a.b.c.d").base(), "b.c");
}

// The generated constants say what the parser of names finds.
TEST(Operator, KnownOnesAreWhatTheirNamesSay) {
  std::set<std::string_view> names;
  for (const OperatorName* known : known_operators()) {
    EXPECT_TRUE(names.insert(known->text).second) << known->text;
    const std::size_t first = known->text.find('.'), last = known->text.rfind('.');
    EXPECT_EQ(Operator(known->text).id(), known);
    if (first == known->text.npos) continue;
    EXPECT_EQ(known->space, known->text.substr(0, first));
    EXPECT_EQ(known->overload, first == last ? "" : known->text.substr(last + 1)) << known->text;
    EXPECT_TRUE(known->text.substr(first + 1).starts_with(known->base)) << known->text;
  }
}

TEST(Operator, IsTheSameInAllThreads) {
  std::vector<Operator> made(8);
  std::vector<std::thread> threads;
  for (Operator& one : made)
    threads.emplace_back([&one] {
      for (int i = 0; i < 200; ++i) one = Operator("threads.op" + std::to_string(i) + ".default");
    });
  for (std::thread& thread : threads) thread.join();
  for (const Operator& one : made) EXPECT_EQ(one, made[0]);
}

}  // namespace
}  // namespace tosaic::test
