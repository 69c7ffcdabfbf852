// SPDX-License-Identifier: Apache-2.0
// What must hold for every row of the operator table, and what must be tested about it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "ops/definitions/tosa_op.h"
#include "tosa_generated.h"

namespace tosaic::tosa {
namespace {

std::string schema_name(std::uint16_t number) {
  std::string name = tosa_schema::EnumNameOp(static_cast<tosa_schema::Op>(number));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

TEST(OperatorTable, HoldsEveryOperatorOfTheSchemaOnce) {
  std::set<std::uint16_t> numbers;
  for (const Op& op : all()) {
    EXPECT_EQ(schema_name(op.schema_number), op.name);
    EXPECT_TRUE(numbers.insert(op.schema_number).second) << op.name;
    EXPECT_EQ(by_schema_number(op.schema_number), &op);
    EXPECT_EQ(find(op.name), &op);
    EXPECT_EQ(find(Operator("tosa." + std::string(op.name))), &op);
  }
  for (auto value : tosa_schema::EnumValuesOp()) {
    const auto number = static_cast<std::uint16_t>(value);
    if (number == 0) continue;  // UNKNOWN
    EXPECT_NE(by_schema_number(number), nullptr) << schema_name(number) << " has no file under ops/tosa";
  }
}

TEST(OperatorTable, FindsNothingElse) {
  for (const char* name : {"", "tosa.", "CONV2D", "fully_connected", "aten.add", "tosa.tosa.add", "add "})
    EXPECT_EQ(find(name), nullptr) << name;
  EXPECT_EQ(by_schema_number(0), nullptr);
  EXPECT_EQ(by_schema_number(101), nullptr);
}

TEST(OperatorTable, InstructionNumbersFollowTheSchema) {
  // TOSA.001000.1 numbers ARGMAX..RESCALE from 0 and leaves out what is not computation.
  for (const Op& op : all())
    EXPECT_EQ(op.spirv_number, op.schema_number <= 66 ? op.schema_number - 1 : 0xffff) << op.name;
}

TEST(OperatorTable, RowsAreComplete) {
  for (const Op& op : all()) {
    SCOPED_TRACE(op.name);
    EXPECT_FALSE(op.summary.empty());
    EXPECT_NE(op.eval, nullptr);
    EXPECT_TRUE(std::is_sorted(op.inputs.begin(), op.inputs.end(), [](auto& a, auto& b) { return a.list < b.list; }));
    std::set<std::string_view> names;
    for (const AttrDef& attr : op.attrs) EXPECT_TRUE(names.insert(attr.name).second) << attr.name;
    names.clear();
    for (const auto* side : {&op.inputs, &op.outputs})
      for (const Operand& operand : *side) {
        EXPECT_TRUE(names.insert(operand.name).second) << operand.name;
        EXPECT_LE(operand.min_rank, operand.max_rank);
        EXPECT_TRUE(!operand.type.empty() || operand.list) << operand.name << " has no type";
      }
    for (const TypeRow& row : op.types) {
      EXPECT_FALSE(row.needs.empty());
      std::set<std::string_view> variables;
      for (const auto& [variable, dtype] : row.types) EXPECT_TRUE(variables.insert(variable).second) << variable;
    }
  }
}

TEST(OperatorTable, SaysNothingTwice) {
  for (const Op& op : all()) {
    std::set<std::vector<std::pair<std::string_view, DType>>> seen;
    for (const TypeRow& row : op.types) EXPECT_TRUE(row.types.empty() || seen.insert(row.types).second) << op.name;
  }
}

std::string text_of(const std::filesystem::path& folder) {
  std::ostringstream text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h")
      text << std::ifstream(entry.path()).rdbuf();
  return text.str();
}

// Every label that an operator file can give must be provoked by a test that names it.
TEST(OperatorTable, EveryRuleHasATest) {
  const std::filesystem::path tests(TOSAIC_TEST_DATA);
  const std::string rules = text_of(tests / ".." / "src" / "ops" / "tosa"), tested = text_of(tests);
  const std::regex quoted("\"([a-z0-9_]+\\.[a-z0-9-]+)\"");
  std::size_t count = 0;
  for (std::sregex_iterator it(rules.begin(), rules.end(), quoted), end; it != end; ++it) {
    const std::string label = (*it)[1];
    if (find(label.substr(0, label.find('.'))) == nullptr) continue;
    ++count;
    EXPECT_NE(tested.find('"' + label + '"'), std::string::npos) << "no test names " << label;
  }
  EXPECT_GT(count, 20u);
}

}  // namespace
}  // namespace tosaic::tosa
