// SPDX-License-Identifier: Apache-2.0
// Calibration samples that do not fit the model: what is said of them.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "api/digits.h"

namespace tosaic::test {
namespace {

constexpr std::size_t pixels = 64;

// The first `count` samples of the digits, each of which `change` may change.
SampleSource changed(const Program& program, std::size_t count,
                     const std::function<void(std::size_t, std::span<float>)>& change) {
  const SampleSource file = good(read_samples(TOSAIC_TEST_DATA "/../examples/digits/digits_samples.npz", program));
  auto all = std::make_shared<std::vector<std::vector<float>>>();
  for (std::vector<InputTensor> lent; all->size() < count && good(file(lent));) {
    const auto* x = static_cast<const float*>(lent[0].data);
    all->emplace_back(x, x + pixels);
    change(all->size() - 1, all->back());
  }
  return [all, next = std::make_shared<std::size_t>(0)](std::vector<InputTensor>& tensors) -> Result<bool> {
    if (*next == all->size()) return *next = 0, false;
    tensors = {{(*all)[(*next)++].data(), DType::f32, {1, 1, 8, 8}}};
    return true;
  };
}

struct Said {
  std::string codes, text;
};
// Of the samples alone.
Said said(std::size_t count, const std::function<void(std::size_t, std::span<float>)>& change) {
  const Program program = digits();
  Said all;
  Callbacks callbacks;
  callbacks.message = [&](const Diagnostic& m) {
    all.codes += (all.codes.empty() ? "" : " ") + m.code;
    all.text += render(m, false);
  };
  const auto made = compile(program, "tosa-int", {}, callbacks, changed(program, count, change));
  if (!made.ok()) {
    all.codes += (all.codes.empty() ? "" : " ") + made.error().code;
    all.text += render(made.error(), false);
  }
  return all;
}

auto each(const std::function<float(float)>& f) {
  return [f](std::size_t, std::span<float> x) {
    for (float& pixel : x) pixel = f(pixel);
  };
}
auto one_pixel(float value) {
  return [value](std::size_t sample, std::span<float> x) {
    if (sample == 3) x[13] = value;
  };
}

TEST(Samples, OfTheModelAreTaken) {
  for (const std::size_t count : {1, 2, 4, 16, 64}) EXPECT_EQ(said(count, each([](float x) { return x; })).codes, "");
  EXPECT_EQ(said(16, each([](float x) { return 2 * x; })).codes, "");
  EXPECT_EQ(said(16, each([](float x) { return x / 2; })).codes, "");
}

TEST(Samples, OfAnotherNormalisationAreSaid) {
  const Said pixels_of_bytes = said(16, each([](float x) { return 255 * x; }));
  EXPECT_EQ(pixels_of_bytes.codes, "calibrate.normalisation");
  EXPECT_NE(pixels_of_bytes.text.find("lies in 0..255"), std::string::npos) << pixels_of_bytes.text;
  EXPECT_NE(pixels_of_bytes.text.find("make_digits.py:"), std::string::npos) << pixels_of_bytes.text;
  EXPECT_NE(pixels_of_bytes.text.find("of samples x / 2"), std::string::npos) << pixels_of_bytes.text;
  EXPECT_EQ(said(1, each([](float x) { return 255 * x; })).codes, "calibrate.normalisation");
  const Said divided_twice = said(16, each([](float x) { return x / 255; }));
  EXPECT_EQ(divided_twice.codes, "calibrate.normalisation");
  EXPECT_NE(divided_twice.text.find("of samples x * 2"), std::string::npos) << divided_twice.text;
  const Said centred = said(16, each([](float x) { return (x - 0.3F) / 0.05F; }));
  EXPECT_EQ(centred.codes, "calibrate.normalisation");
  EXPECT_NE(centred.text.find("of samples (x + "), std::string::npos) << centred.text;
}

TEST(Samples, WithoutNumbersAreRefused) {
  const Said nan = said(8, one_pixel(NAN));
  EXPECT_EQ(nan.codes, "calibrate.not-a-number");
  EXPECT_NE(nan.text.find("sample 3 has NaN in input 'image', at [0, 0, 1, 5]"), std::string::npos) << nan.text;
  EXPECT_EQ(said(8, one_pixel(INFINITY)).codes, "calibrate.not-a-number");
}

TEST(Samples, ThatShowNothingAreSaid) {
  EXPECT_EQ(said(8, each([](float) { return 0.0F; })).codes, "calibrate.constant");
  std::vector<float> first;
  const Said same = said(8, [&](std::size_t sample, std::span<float> x) {
    if (sample == 0) first.assign(x.begin(), x.end());
    std::ranges::copy(first, x.begin());
  });
  EXPECT_EQ(same.codes, "calibrate.same-samples");
}

// What a program replaces is no mistake of its samples, as long as its results are numbers.
TEST(Samples, MayHoldWhatTheProgramReplaces) {
  const std::string text =
      "graph @main(%x: 2x3xf32) -> (%y) {\n  %m: 2x3xf32 = aten.nan_to_num.default(%x)\n"
      "  %y: 2x3xf32 = aten.relu.default(%m)\n}\n";
  const Program program = good(Program::read(Bytes::copy(text.data(), text.size()), "net.txt"));
  const float x[6] = {-1, 2, NAN, 4, -5, 6};
  bool given = false;
  const SampleSource samples = [&](std::vector<InputTensor>& tensors) -> Result<bool> {
    tensors = {{x, DType::f32, {2, 3}}};
    return !std::exchange(given, true);
  };
  EXPECT_TRUE(compile(program, "tosa-int", {}, {}, samples).ok());
}

}  // namespace
}  // namespace tosaic::test
