// SPDX-License-Identifier: Apache-2.0
// One flipped bit of a file. Formats without a checksum cannot tell a number from another one, but no table whose
// fields have gone may look like one that has none: what loads takes inputs, and what runs gives outputs.
#include <gtest/gtest.h>
#include <map>

#include "api/digits.h"

namespace tosaic::test {
namespace {

Bytes bytes(std::string_view text) { return Bytes::copy(text.data(), text.size()); }

// What became of all its bits: "ran", "nothing", or the beginning of a code.
std::map<std::string, int> outcomes(const Bytes& whole, std::size_t step) {
  std::map<std::string, int> counts;
  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += step) {
    std::string changed(whole.text());
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    auto session = Session::load(bytes(changed), "flipped", {.threads = 1});
    if (!session.ok()) {
      EXPECT_FALSE(session.error().internal) << "bit " << bit << ": " << session.error().message;
      ++counts[session.error().code.substr(0, session.error().code.find('.'))];
      continue;
    }
    std::vector<OwnedTensor> inputs;
    for (const TensorInfo& info : session->inputs()) {
      if (info.bytes() > (1u << 20)) continue;
      inputs.push_back({info.dtype, info.sizes(), Bytes::of(std::vector<std::byte>(info.bytes()))});
    }
    const auto outputs = session->run(lent(inputs));
    const bool nothing = outputs.ok() && (outputs->empty() || session->inputs().empty());
    EXPECT_FALSE(nothing) << "bit " << bit;
    ++counts[nothing ? "nothing" : outputs.ok() ? "ran" : outputs.error().code];
    EXPECT_TRUE(session->reset().ok());
  }
  return counts;
}

struct Form {
  const char* target;
  const char* piece;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.target << " " << form.piece; }

class FlippedBits : public testing::TestWithParam<Form> {};
TEST_P(FlippedBits, MakeNothingVanish) {
  const auto program = good(Program::read(bytes(R"(graph @main(%x: 1x4x4x2xf32, %w: 1x4x4x2xf32) -> (%sum, %t) {
  %sum: 1x4x4x2xf32 = aten.add.Tensor(%x, %w) {alpha = 1}
  %t: 1x4x4x2xf32 = aten.tanh.default(%sum)
}
)")));
  const Artifact artifact = good(compile(program, GetParam().target));
  const Bytes whole = good(artifact.piece(GetParam().piece));
  const auto counts = outcomes(whole, 1);
  EXPECT_GT(counts.at("ran"), 0);
  for (const auto& [what, count] : counts) RecordProperty(what, count);
}
INSTANTIATE_TEST_SUITE_P(Forms, FlippedBits,
                         testing::Values(Form{"tosa-fp", "tosa"}, Form{"tosa-fp", "pte"}, Form{"vgf", "vgf"},
                                         Form{"vgf", "pte"}));

}  // namespace
}  // namespace tosaic::test
