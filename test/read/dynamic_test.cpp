// SPDX-License-Identifier: Apache-2.0
// The shapes of dynamic programs at several sizes, as torch says them (make_dynamic.py).
#include <fstream>
#include <sstream>

#include "ir/specialise.h"
#include "read/fixture.h"

namespace tosaic::test {
namespace {

Shape shape_of(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::istringstream dims(text);
  for (std::string dim; std::getline(dims, dim, 'x');) sizes.push_back(std::stoll(dim));
  return Shape(sizes);
}
std::vector<std::string> parts_of(const std::string& line) {
  std::vector<std::string> parts{""};
  for (std::size_t i = 0; i < line.size(); ++i)
    if (line.compare(i, 3, " | ") == 0)
      parts.emplace_back(), i += 2;
    else
      parts.back() += line[i];
  return parts;
}

TEST(ReadPt2, dynamic_shapes_are_what_torch_says_at_every_size) {
  std::ifstream file(fixture_path("dynamic_sizes.txt"));
  std::map<std::string, int> compared;
  for (std::string line; std::getline(file, line);) {
    const auto parts = parts_of(line);
    SCOPED_TRACE(parts[0] + " at " + parts[1]);
    const auto r = read_fixture(parts[0]);
    // What is printed reads back as the same sizes.
    const std::string text = print(r.graph(), ConstantText::all);
    const auto back = parse(text);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(print(*back, ConstantText::all), text);
    std::vector<Shape> shapes;
    std::istringstream inputs(parts[1]);
    for (std::string shape; inputs >> shape;) shapes.push_back(shape_of(shape));
    const auto sizes = sizes_of(r.graph(), shapes);
    ASSERT_TRUE(sizes.ok()) << sizes.error().message;
    const auto special = specialise(*back, *sizes);
    ASSERT_TRUE(special.ok()) << special.error().message;
    EXPECT_TRUE(verify(*special).ok()) << verify(*special).error().message;
    for (const Value& v : special->values) EXPECT_TRUE(v.type.shape.is_static() && !v.size) << v.name;
    for (std::size_t i = 2; i < parts.size(); ++i) {
      const auto space = parts[i].find(' ');
      const std::string name = parts[i].substr(0, space), expected = parts[i].substr(space + 1);
      const Value* value = r.value(name);
      if (!value) continue;  // of several results torch gives those that nobody reads no name
      ++compared[parts[0]];
      if (expected[0] == '=') {
        ASSERT_TRUE(value->size) << name;
        EXPECT_EQ(to_string(at(*value->size, *sizes)), expected.substr(1)) << name;
        continue;
      }
      std::vector<Dim> dims;
      for (const Dim& d : value->type.shape.dims()) dims.push_back(at(d, *sizes));
      EXPECT_EQ(to_string(Shape(dims)), to_string(shape_of(expected))) << name << " " << to_string(value->type);
    }
  }
  EXPECT_EQ(compared.size(), 3u);
  for (const auto& [name, count] : compared) EXPECT_GT(count, 25) << name;
}

}  // namespace
}  // namespace tosaic::test
