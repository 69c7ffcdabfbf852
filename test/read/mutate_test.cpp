// SPDX-License-Identifier: Apache-2.0
// A short seeded run of what the fuzzer does at length: every fixture, changed at random, gives a graph that
// verifies or a diagnostic. Sanitizers make it worth more.
#include <random>

#include "read/fixture.h"

namespace tosaic::test {
namespace {

constexpr const char* fixtures[] = {"conv.pt2",    "conv_torch28.pt2", "storages.pt2", "several.pt2",  "arguments.pt2",
                                    "dynamic.pt2", "cond.pt2",         "cache.pt2",    "keywords.pt2", "pt2e.pt2"};

void expect_sane(const Bytes& archive, const std::string& what) {
  auto r = read_bytes(archive);
  if (!r.ok()) {
    EXPECT_FALSE(r.program.error().code.empty()) << what;
    EXPECT_FALSE(r.program.error().internal) << what << ": " << r.why();
    return;
  }
  for (const Method& m : r.program->methods) {
    Status status = verify(m.graph);
    EXPECT_TRUE(status.ok()) << what << ": " << (status.ok() ? "" : status.error().message);
  }
}

// Bytes anywhere: container, weights, JSON, pickles.
TEST(MutatePt2, flipped_bytes) {
  std::mt19937 random(2026);
  for (const char* name : fixtures) {
    const std::string whole(fixture(name).text());
    for (int round = 0; round < 300; ++round) {
      std::string changed = whole;
      for (int i = 0, n = 1 + static_cast<int>(random() % 8); i < n; ++i)
        changed[random() % changed.size()] = static_cast<char>(random());
      expect_sane(Bytes::copy(changed.data(), changed.size()), std::string(name) + " round " + std::to_string(round));
    }
  }
}

// Only in records whose bytes mean something, so that the container does not refuse most of them.
TEST(MutatePt2, changed_json_and_pickles) {
  std::mt19937 random(7);
  const std::string interesting[] = {"-1",    "0",       "9223372036854775807", "null", "true", "\"\"", "[]", "{}",
                                     "\"x\"", "as_none", "as_tensor",           "1e308"};
  for (const char* name : fixtures) {
    const Bytes archive = fixture(name);
    for (int round = 0; round < 150; ++round) {
      auto change = [&](const std::string& content) {
        std::string text = content;
        for (int i = 0, n = 1 + static_cast<int>(random() % 3); i < n; ++i) {
          const std::size_t at = random() % text.size();
          switch (random() % 4) {
            case 0: text[at] = static_cast<char>(random()); break;
            case 1: text.erase(at, random() % 8); break;
            case 2: text.insert(at, text.substr(random() % text.size(), random() % 64)); break;
            default: {  // a number or a word becomes another
              const auto digit = text.find_first_of("0123456789", at);
              if (digit != std::string::npos)
                text.replace(digit, text.find_first_not_of("0123456789", digit) - digit, interesting[random() % 12]);
            }
          }
        }
        return std::optional(text);
      };
      const bool pickled = round % 3 == 0 && std::string(name) != "cache.pt2";
      expect_sane(with_changes(archive, {{pickled ? "sample_inputs/model.pt" : "models/model.json", change}}),
                  std::string(name) + " json round " + std::to_string(round));
    }
  }
}

}  // namespace
}  // namespace tosaic::test
