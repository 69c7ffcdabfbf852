// SPDX-License-Identifier: Apache-2.0
// The support matrix as text, so that a change shows what it gains or loses. `make matrix` writes it again.
#include <gtest/gtest.h>
#include <algorithm>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ops/domain.h"
#include "pipeline/support_columns.h"

namespace tosaic {
namespace {

const std::string golden = TOSAIC_TEST_DATA "/pipeline/support_matrix.txt";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(SupportMatrix, is_what_the_golden_file_says) {
  const auto columns = support_columns();
  auto matrix = support_matrix(columns);
  ASSERT_TRUE(matrix.ok()) << render(matrix.error(), false);
  const std::string text = print(*matrix, columns);
  if (std::getenv("TOSAIC_BLESS")) std::ofstream(golden) << text;
  std::stringstream stored;
  stored << std::ifstream(golden).rdbuf();
  const auto want = lines_of(stored.str()), got = lines_of(text);
  for (std::size_t i = 0; i < std::min(want.size(), got.size()); ++i)
    ASSERT_EQ(got[i], want[i]) << "support_matrix.txt:" << i + 1
                               << ": `make matrix` writes the file again; read its diff";
  EXPECT_EQ(got.size(), want.size());
}

TEST(SupportMatrix, knows_every_overload) {
  const auto columns = std::vector<SupportColumn>{};
  auto matrix = support_matrix(columns);
  ASSERT_TRUE(matrix.ok());
  for (const NamedAtenOp& named : all_aten())
    for (std::string_view text : named.op.schemas) {
      auto schema = parse_schema(text);
      ASSERT_TRUE(schema.ok());
      if (find_aten(Operator(schema->full_name())).schema->in_place) continue;
      EXPECT_TRUE(
          std::any_of(matrix->begin(), matrix->end(), [&](const auto& row) { return row.op == schema->full_name(); }))
          << schema->full_name() << " has no call in its operator's domain";
    }
}

}  // namespace
}  // namespace tosaic
