// SPDX-License-Identifier: Apache-2.0
// Forms that the Ethos-U has cheap commands for.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <array>
#include <utility>

#include "targets/ethos_u/products.h"
#include "targets/same_results.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

TEST(EthosU, images_become_rows) {
  const std::string text = R"(graph @main(%x: 1x3x4x5xi8) -> (%y) {
    %y: 1x4x5x3xi8 = tosa.transpose(%x) {perms=[0, 2, 3, 1]}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 3);
}

TEST(EthosU, images_are_multiplied_into_place) {
  for (const auto& [from, to] : {std::pair("1x3x4x5", "1x4x5x3"), {"1x2x32x3", "1x32x3x2"}, {"1x8x16x4", "1x16x4x8"}}) {
    const std::string text = fmt::format(
        "graph @main(%x: {}xi8) -> (%y) {{ %y: {}xi8 = tosa.transpose(%x) {{perms=[0, 2, 3, 1]}} }}", from, to);
    expect_same_results(text, ethos_u::shape_for_u65, 4);
    expect_same_results(text, ethos_u::shape_for_u85, 4);
  }
}

TEST(EthosU, images_of_a_batch_are_turned_one_by_one) {
  const std::string text = R"(graph @main(%x: 3x2x4x5xi8) -> (%y) {
    %y: 3x4x5x2xi8 = tosa.transpose(%x) {perms=[0, 2, 3, 1]}
  })";
  expect_same_results(text, ethos_u::shape_for_u55, 1);
  expect_same_results(text, ethos_u::shape_for_u85, 16);
}

TEST(EthosU, maxima_run_along_the_width) {
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85})
    expect_same_results(R"(graph @main(%x: 2x3x4x5xi8) -> (%y) {
      %y: 2x3x4x1xi8 = tosa.reduce_max(%x) {axis=3, nan_mode="propagate"}
    })",
                        shape, 4);
}

TEST(EthosU, sums_along_neighbouring_axes_are_one) {
  const std::string mean = R"(graph @main(%x: 1x6x5x4xi32) -> (%y) {
    %w: 1x6x1x4xi32 = tosa.reduce_sum(%x) {axis=2}
    %y: 1x1x1x4xi32 = tosa.reduce_sum(%w) {axis=1}
  })";
  const std::string all = R"(graph @main(%x: 2x6x5x4xi32) -> (%y) {
    %a: 1x6x5x4xi32 = tosa.reduce_sum(%x) {axis=0}
    %b: 1x1x5x4xi32 = tosa.reduce_sum(%a) {axis=1}
    %c: 1x1x1x4xi32 = tosa.reduce_sum(%b) {axis=2}
    %y: 1x1x1x1xi32 = tosa.reduce_sum(%c) {axis=3}
  })";
  const std::string apart = R"(graph @main(%x: 2x6x5x4xi32) -> (%y) {
    %a: 1x6x5x4xi32 = tosa.reduce_sum(%x) {axis=0}
    %y: 1x6x1x4xi32 = tosa.reduce_sum(%a) {axis=2}
  })";
  const std::string seen = R"(graph @main(%x: 1x6x5x4xi32) -> (%w, %y) {
    %w: 1x6x1x4xi32 = tosa.reduce_sum(%x) {axis=2}
    %y: 1x1x1x4xi32 = tosa.reduce_sum(%w) {axis=1}
  })";
  const std::string long_axis = R"(graph @main(%x: 1x256x257x1xi32) -> (%y) {
    %w: 1x256x1x1xi32 = tosa.reduce_sum(%x) {axis=2}
    %y: 1x1x1x1xi32 = tosa.reduce_sum(%w) {axis=1}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) {
    expect_same_results(mean, shape, 3);
    expect_same_results(all, shape, 5);  // two sums of two, views
    expect_same_results(apart, shape, 2);
    expect_same_results(seen, shape, 2);
    expect_same_results(long_axis, shape, 2);
  }
}

TEST(EthosU, packed_heads_are_cut_before_they_are_turned) {
  expect_same_results(R"(graph @main(%x: 1x5x24xi8) -> (%q, %k) {
    %s: 5xshape = constant [1, 5, 3, 4, 2]
    %h: 1x5x3x4x2xi8 = tosa.reshape(%x, %s)
    %t: 3x1x4x5x2xi8 = tosa.transpose(%h) {perms=[2, 0, 3, 1, 4]}
    %a: 5xshape = constant [0, 0, 0, 0, 0]
    %b: 5xshape = constant [1, 0, 0, 0, 0]
    %n: 5xshape = constant [1, 1, 4, 5, 2]
    %q: 1x1x4x5x2xi8 = tosa.slice(%t, %a, %n)
    %k: 1x1x4x5x2xi8 = tosa.slice(%t, %b, %n)
  })",
                      ethos_u::shape_for_u55, 10);
}

TEST(EthosU, windows_side_by_side_become_channels) {
  const std::string text = R"(graph @main(%x: 1x8x12x2xi8) -> (%y) {
    %w: 3x4x4x2xi8 = constant [)" +
                           codes(3 * 4 * 4 * 2) + R"(]
    %b: 3xi32 = constant [5, -7, 100]
    %zx: 1xi8 = constant [4]
    %zw: 1xi8 = constant [0]
    %y: 1x2x3x3xi32 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=[0, 0, 0, 0], stride=[4, 4], dilation=[1, 1], acc_type=i32, local_bound=false}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) expect_same_results(text, shape, 7);
}

std::string strided(const std::string& x, const std::string& weight, int weights, const std::string& y,
                    const std::string& pad) {
  return "graph @main(%x: " + x + "xi8) -> (%y) {\n    %w: " + weight + "xi8 = constant [" + codes(weights) + R"(]
    %b: 3xi32 = constant [5, -7, 100]
    %zx: 1xi8 = constant [4]
    %zw: 1xi8 = constant [0]
    %y: )" +
         y + "xi32 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=" + pad +
         ", stride=[2, 2], dilation=[1, 1], acc_type=i32, local_bound=false}\n  }";
}

TEST(EthosU, columns_that_a_stride_skips_become_channels) {
  // A window that begins at an even column, at an odd one, and one that would not become cheaper.
  const std::string even = strided("1x7x8x3", "3x3x4x3", 108, "1x3x3x3", "[0, 0, 0, 0]");
  expect_same_results(even, ethos_u::shape_for_u55, 2);
  expect_same_results(strided("2x7x8x3", "3x3x3x3", 81, "2x4x4x3", "[1, 1, 1, 0]"), ethos_u::shape_for_u55, 2);
  expect_same_results(strided("1x7x8x8", "3x3x3x8", 216, "1x4x4x3", "[1, 1, 1, 0]"), ethos_u::shape_for_u55, 1);
  expect_same_results(even, ethos_u::shape_for_u85, 1);
}

TEST(EthosU, a_small_image_gives_its_rows_too) {
  std::string text = strided("1x49x10x1", "3x10x4x1", 120, "1x25x5x3", "[5, 4, 1, 1]");
  expect_same_results(text, ethos_u::shape_for_u55, 2);  // too few sums to pay for the copies
  text = strided("1x49x10x1", "40x10x4x1", 1600, "1x25x5x40", "[5, 4, 1, 1]");
  text.replace(text.find("3xi32 = constant [5, -7, 100]"), 29, "1xi32 = constant [5]");
  expect_same_results(text, ethos_u::shape_for_u55, 7);
}

// A 1x1 convolution, what is fused into it, and the mean over the image.
std::string mean_after_pointwise(const std::string& image, const std::string& kernel, const std::string& outputs) {
  return "graph @main(%x: 1x" + image + "x2xi8) -> (" + outputs + R"() {
    %w: 3x1x1x2xi8 = constant [100, -7, 33, 64, -128, 5]
    %b: 3xi32 = constant [5, -7, 100]
    %zero: 1xi8 = constant [0]
    %c: 1x)" +
         image +
         R"(x3xi32 = tosa.conv2d(%x, %w, %b, %zero, %zero) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
    %m: 1xi32 = constant [1080000000]
    %s: 1xi8 = constant [37]
    %wide: 1xi32 = constant [0]
    %r: 1x)" +
         image + "x3xi8 = tosa.rescale(%c, %m, %s, %wide, %zero) " + rescaling + R"(
    %a: 1x)" +
         image + R"(x3xi8 = tosa.clamp(%r) {min_val=-3, max_val=90, nan_mode="propagate"}
    %y: 1x1x1x3xi8 = tosa.avg_pool2d(%a, %zero, %zero) {kernel=)" +
         kernel + R"(, stride=[1, 1], pad=[0, 0, 0, 0], acc_type=i32}
  })";
}

TEST(EthosU, an_image_with_odd_sides_is_a_row_before_its_mean) {
  const std::string odd = mean_after_pointwise("25x5", "[25, 5]", "%y");
  expect_same_results(odd, ethos_u::shape_for_small_u85, 5);
  expect_same_results(odd, ethos_u::shape_for_u85, 4);
  // Full micro-blocks, too few pixels, a window too long for a row, and an image that somebody else reads.
  for (const auto& [image, kernel, outputs] : std::vector<std::array<std::string, 3>>{{"14x14", "[14, 14]", "%y"},
                                                                                      {"7x7", "[7, 7]", "%y"},
                                                                                      {"63x5", "[63, 5]", "%y"},
                                                                                      {"25x5", "[25, 5]", "%y, %a"}})
    expect_same_results(mean_after_pointwise(image, kernel, outputs), ethos_u::shape_for_small_u85, 4);
}

TEST(EthosU, parts_of_a_packed_linear_are_convolutions) {
  std::string scaling = rescaling;
  scaling.replace(scaling.find("per_channel=false"), 17, "per_channel=true");
  const std::string text = R"(graph @main(%x: 1x1x5x4xi8) -> (%q, %k) {
    %w: 6x1x1x4xi8 = constant [)" +
                           codes(24) + R"(]
    %b: 6xi32 = constant [5, -7, 100, 3, 9, -80]
    %zx: 1xi8 = constant [4]
    %zw: 1xi8 = constant [0]
    %c: 1x1x5x6xi32 = tosa.conv2d(%x, %w, %b, %zx, %zw) {pad=[0, 0, 0, 0], stride=[1, 1], dilation=[1, 1], acc_type=i32, local_bound=false}
    %m: 6xi32 = constant [1073741824, 1273741824, 1373741824, 1473741824, 1573741824, 1673741824]
    %s: 6xi8 = constant [37, 38, 37, 38, 37, 38]
    %zc: 1xi32 = constant [0]
    %p: 1x1x5x6xi8 = tosa.rescale(%c, %m, %s, %zc, %zx) )" +
                           scaling + R"(
    %a: 4xshape = constant [0, 0, 0, 0]
    %d: 4xshape = constant [0, 0, 0, 4]
    %n: 4xshape = constant [1, 1, 5, 4]
    %l: 4xshape = constant [1, 1, 5, 2]
    %f: 1x1x5x4xi8 = tosa.slice(%p, %a, %n)
    %g: 1x1x5x2xi8 = tosa.slice(%p, %d, %l)
    %q: 1x1x4x5xi8 = tosa.transpose(%f) {perms=[0, 1, 3, 2]}
    %k: 1x1x2x5xi8 = tosa.transpose(%g) {perms=[0, 1, 3, 2]}
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) expect_same_results(text, shape, 6);
}

TEST(EthosU, a_constant_term_is_as_narrow_as_the_tensor) {
  const auto sum = [](const std::string& dtype, const std::string& shift, const std::string& constant) {
    return "graph @main(%x: 1x4x" + dtype + R"() -> (%y) {
    %m: 1xi32 = constant [1073741824]
    %s: 1xi8 = constant [)" +
           shift + R"(]
    %zi: 1x)" +
           dtype + R"( = constant [0]
    %zo: 1xi32 = constant [0]
    %w: 1x4xi32 = tosa.rescale(%x, %m, %s, %zi, %zo) )" +
           rescaling + "\n    %c: 1x4xi32 = constant [" + constant + "]\n    %y: 1x4xi32 = tosa.sub(%c, %w)\n  }";
  };
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) {
    // 127, -126, 1 and -1 times 4099/4; 3, -1, 2 and 4 times 5/4; 32767, 5, -100 and -1 times 9/4.
    expect_same_results(sum("i8", "11", "130143, -129118, 1025, -1025"), shape, 3);
    expect_same_results(sum("i8", "11", "4, -1, 3, 5"), shape, 3);
    expect_same_results(sum("i16", "16", "73726, 11, -225, -2"), shape, 3);
    expect_same_results(sum("i8", "11", "130143, -129118, 1026, -1025"), shape, 2);  // more bits than 8
    expect_same_results(sum("i8", "12", "130143, -129118, 1025, -1025"), shape, 2);  // not the largest factor
  }
}

TEST(EthosU, every_reader_has_its_own_rescale) {
  expect_same_results(R"(graph @main(%x: 4xi8) -> (%y) {
    %m: 1xi32 = constant [1073741824]
    %s: 1xi8 = constant [30]
    %zi: 1xi8 = constant [3]
    %zo: 1xi32 = constant [0]
    %shift: 1xi8 = constant [0]
    %w: 4xi32 = tosa.rescale(%x, %m, %s, %zi, %zo) )" +
                          rescaling + R"(
    %y: 4xi32 = tosa.mul(%w, %w, %shift)
  })",
                      ethos_u::shape_for_u55, 3);
}

TEST(EthosU, slices_of_five_dims_are_cut_in_four) {
  const std::string text = R"(graph @main(%x: 1x4x5x6x8xi8) -> (%y) {
    %a: 5xshape = constant [0, 1, 0, 2, 0]
    %n: 5xshape = constant [1, 3, 4, 4, 8]
    %y: 1x3x4x4x8xi8 = tosa.slice(%x, %a, %n)
  })";
  const std::string four = R"(graph @main(%x: 3x4x5x6x8xi8) -> (%y) {
    %a: 5xshape = constant [1, 1, 0, 2, 3]
    %n: 5xshape = constant [2, 3, 4, 4, 5]
    %y: 2x3x4x4x5xi8 = tosa.slice(%x, %a, %n)
  })";
  for (auto shape : {ethos_u::shape_for_u55, ethos_u::shape_for_u85}) {
    expect_same_results(text, shape, 3);
    expect_same_results(four, shape, 5);
  }
}

// Here the second transpose is one of dims that the view keeps, ones aside.
TEST(Tidy, transposes_meet_through_views_that_move_ones) {
  expect_same_results(R"(graph @main(%x: 1x4x1x40xi8) -> (%y) {
    %t: 1x40x1x4xi8 = tosa.transpose(%x) {perms=[0, 3, 2, 1]}
    %s: 4xshape = constant [1, 40, 2, 2]
    %v: 1x40x2x2xi8 = tosa.reshape(%t, %s)
    %y: 1x2x2x40xi8 = tosa.transpose(%v) {perms=[0, 2, 3, 1]}
  })",
                      [](Graph& graph, const Rewrites&) { tidy(graph); }, 1);
}

}  // namespace
}  // namespace tosaic
