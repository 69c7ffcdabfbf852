// SPDX-License-Identifier: Apache-2.0
// Files that are wrong in one way each: the error names it, and nothing breaks.
#include "read/fixture.h"

namespace tosaic::test {
namespace {

void expect_refused(const Bytes& archive, const std::string& code, const std::string& words) {
  auto r = read_bytes(archive);
  ASSERT_FALSE(r.ok()) << "expected " << code;
  EXPECT_EQ(r.program.error().code, code) << r.why();
  EXPECT_NE(r.why().find(words), std::string::npos) << r.why();
  EXPECT_FALSE(r.program.error().place.file.empty());
}
void expect_refused(const std::string& fixture_name, const std::string& from, const std::string& to,
                    const std::string& code, const std::string& words) {
  expect_refused(with_program_text(fixture_name, from, to), code, words);
}
Bytes text(const std::string& content) { return Bytes::copy(content.data(), content.size()); }

TEST(BadPt2, missing_file) {
  auto r = read_pt2("no/such/file.pt2", {});
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, "file.missing");
}
TEST(BadPt2, not_a_zip) {
  expect_refused(text("import torch\n"), "zip.not-a-zip", "not a zip");
  expect_refused(text(""), "zip.not-a-zip", "not a zip");
}
TEST(BadPt2, no_program) {
  expect_refused(make_zip({{"model/data.pkl", "x"}}), "pt2.no-program", "no exported program");
}
TEST(BadPt2, big_endian) {
  expect_refused(with_changes(fixture("conv.pt2"), {{"/byteorder", [](auto&) { return "big"; }}}), "pt2.byte-order",
                 "big");
}
TEST(BadPt2, truncated_at_every_byte) {
  const Bytes whole = fixture("tied.pt2");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy, so that a sanitizer sees reads beyond the end.
    auto r = read_bytes(Bytes::copy(whole.data(), size));
    ASSERT_FALSE(r.ok()) << size;
    ASSERT_TRUE(r.program.error().code == "zip.truncated" || r.program.error().code == "zip.not-a-zip")
        << size << ": " << r.why();
  }
}
TEST(BadPt2, other_schema_major) {
  expect_refused("conv.pt2", R"("major":8)", R"("major":9)", "pt2.schema-version", "9.20");
  auto r = read_bytes(with_program_text("conv.pt2", R"("major":8)", R"("major":7)"));
  EXPECT_NE(r.program.error().help.find("torch 2.9"), std::string::npos) << "it tells the way out";
}
TEST(BadPt2, json_that_is_none) {
  auto cut = [](const std::string& json) { return json.substr(0, json.size() / 2); };
  expect_refused(with_changes(fixture("conv.pt2"), {{"models/model.json", cut}}), "pt2.bad-json", "models/model.json");
  expect_refused(
      with_changes(fixture("conv.pt2"), {{"models/model.json", [](auto&) { return std::string(100000, '['); }}}),
      "pt2.bad-json", "not valid JSON");
  expect_refused(with_changes(fixture("conv.pt2"), {{"models/model.json", [](auto&) { return "[]"; }}}), "pt2.bad-json",
                 "must be an object");
}
TEST(BadPt2, member_of_the_wrong_type) {
  expect_refused("conv.pt2", R"("as_ints":[2,3])", R"("as_ints":["2",3])", "pt2.bad-json", "aten.mean.dim");
  expect_refused("conv.pt2", R"("target":"torch.ops.aten.mean.dim")", R"("target":5)", "pt2.bad-json",
                 "'target' must be a string");
  expect_refused("conv.pt2", R"({"as_ints":[2,3]})", R"({"as_new_thing":[2,3]})", "pt2.bad-json", "as_new_thing");
}
TEST(BadPt2, missing_weight) {
  auto gone = [](auto&) { return std::nullopt; };
  expect_refused(with_changes(fixture("conv.pt2"), {{"weights/weight_0", gone}}), "pt2.missing-weight",
                 "'conv.weight'");
  expect_refused(with_changes(fixture("conv.pt2"), {{"model_weights_config.json", gone}}), "pt2.missing-weight",
                 "'conv.weight'");
  auto empty = [](auto&) { return ""; };
  expect_refused(with_changes(fixture("conv.pt2"), {{"weights/weight_0", empty}}), "pt2.missing-weight", "no data");
}
TEST(BadPt2, weights_that_no_node_uses_may_be_missing) {
  auto r = read_bytes(with_changes(fixture("conv.pt2"), {{"weights/weight_8", [](auto&) { return std::nullopt; }}}));
  EXPECT_TRUE(r.ok()) << r.why();
}
TEST(BadPt2, tensor_larger_than_its_record) {
  auto cut = [](const std::string& data) { return data.substr(0, data.size() - 4); };
  expect_refused(with_changes(fixture("conv.pt2"), {{"weights/weight_0", cut}}), "pt2.tensor-beyond-record",
                 "the record has 428 bytes, 107 elements");
}
// Changes the sizes of conv.weight both where it is stored and where the graph takes it.
void expect_shape_refused(const std::string& size, const std::string& code, const std::string& words) {
  auto change = [&](const std::string& json) {
    std::string out = json;
    for (const std::string from :
         {R"("sizes": [{"as_int": 4}, {"as_int": 3})", R"("sizes":[{"as_int":4},{"as_int":3})"})
      if (auto at = out.find(from); at != std::string::npos)
        out.replace(at, from.size(), R"("sizes":[{"as_int":)" + size + R"(},{"as_int":3})");
    EXPECT_NE(out, json);
    return std::optional(out);
  };
  expect_refused(
      with_changes(fixture("conv.pt2"), {{"model_weights_config.json", change}, {"models/model.json", change}}), code,
      words);
}
TEST(BadPt2, impossible_sizes) {
  expect_shape_refused("-4", "pt2.bad-shape", "negative size -4");
  expect_shape_refused("4611686018427387904", "pt2.bad-shape", "no memory holds");
  expect_shape_refused("5", "pt2.tensor-beyond-record", "432 bytes");
  expect_shape_refused("18446744073709551616", "pt2.bad-json", "");
}
TEST(BadPt2, impossible_strides_and_offsets) {
  auto config = [](const std::string& from, const std::string& to) {
    return with_changes(fixture("conv.pt2"), {{"model_weights_config.json", [&](const std::string& json) {
                                                 std::string out = json;
                                                 const auto at = out.find(from);
                                                 EXPECT_NE(at, std::string::npos);
                                                 return std::optional(out.replace(at, from.size(), to));
                                               }}});
  };
  const std::string strides = R"("strides": [{"as_int": 27}, )", offset = R"("storage_offset": {"as_int": 0})";
  expect_refused(config(strides, R"("strides": [{"as_int": 9223372036854775807}, )"), "pt2.tensor-beyond-record",
                 "out of all range");
  expect_refused(config(strides, R"("strides": [{"as_int": -27}, )"), "pt2.tensor-beyond-record", "-27");
  expect_refused(config(strides, R"("strides": [)"), "pt2.bad-shape", "4 sizes, but 3 strides");
  expect_refused(config(offset, R"("storage_offset": {"as_int": 1})"), "pt2.tensor-beyond-record", "reach element 108");
  expect_refused(config(offset, R"("storage_offset": {"as_int": -1})"), "pt2.tensor-beyond-record", "offset -1");
  expect_refused(config(R"("dtype": 7)", R"("dtype": 6)"), "pt2.weight-mismatch", "f16");
  expect_refused(config(R"("dtype": 7)", R"("dtype": 10)"), "pt2.tensor-beyond-record", "conv.weight");
  expect_refused(config(R"("dtype": 7)", R"("dtype": 11)"), "pt2.unsupported-dtype", "complex128");
  expect_refused(config(R"("use_pickle": false)", R"("use_pickle": true)"), "pt2.pickled-weight", "tensor subclass");
}
TEST(BadPt2, expanded_tensor_beyond_reason) {
  auto change = [](const std::string& json) {
    std::string out = json;
    for (const std::string from :
         {R"("sizes": [{"as_int": 4}, {"as_int": 3})", R"("sizes":[{"as_int":4},{"as_int":3})"})
      if (auto at = out.find(from); at != std::string::npos)
        out.replace(at, from.size(), R"("sizes":[{"as_int":1000000000000},{"as_int":3})");
    const std::string stride = R"("strides": [{"as_int": 27})";
    if (auto at = out.find(stride); at != std::string::npos)
      out.replace(at, stride.size(), R"("strides": [{"as_int": 0})");
    return std::optional(out);
  };
  expect_refused(
      with_changes(fixture("conv.pt2"), {{"model_weights_config.json", change}, {"models/model.json", change}}),
      "pt2.tensor-too-large", "108 stored elements");
}
TEST(BadPt2, type_that_cannot_be_held) {
  auto r = read_bytes(with_program_text("conv.pt2", R"("mean":{"dtype":7)", R"("mean":{"dtype":11)"));
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.program.error().code, "pt2.unsupported-dtype");
  EXPECT_EQ(r.program.error().place.text, "y = y.mean((2, 3))") << "the line that makes it";
}
TEST(BadPt2, duplicate_names) {
  expect_refused("conv.pt2", R"("outputs":[{"as_tensor":{"name":"mean"}}])",
                 R"("outputs":[{"as_tensor":{"name":"add_"}}])", "pt2.duplicate-name", "'add_'");
}
TEST(BadPt2, cycles_and_undefined_names) {
  expect_refused("conv.pt2", R"({"name":"self","arg":{"as_tensor":{"name":"batch_norm"}})",
                 R"({"name":"self","arg":{"as_tensor":{"name":"linear"}})", "pt2.use-before-definition", "'linear'");
  expect_refused("conv.pt2", R"({"name":"self","arg":{"as_tensor":{"name":"batch_norm"}})",
                 R"({"name":"self","arg":{"as_tensor":{"name":"nobody"}})", "pt2.undefined-value", "'nobody'");
}
TEST(BadPt2, signature_that_does_not_fit) {
  expect_refused("conv.pt2", R"({"user_input":{"arg":{"as_tensor":{"name":"x"}}}})", "null", "pt2.bad-json", "");
  expect_refused("conv.pt2", R"("output_specs":[)", R"("output_specs":[{"user_output":{"arg":{"as_none":true}}},)",
                 "pt2.bad-json", "1 outputs, its signature 2");
  expect_refused("conv.pt2", R"({"user_output":)", R"({"gradient_to_parameter":)", "pt2.unsupported-construct",
                 "gradients");
}
TEST(BadPt2, graphs_nested_without_end) {
  std::string graph = R"({"inputs":[],"outputs":[],"nodes":[],"tensor_values":{}})";
  for (int i = 0; i < 40; ++i)
    graph =
        R"({"inputs":[],"outputs":[],"tensor_values":{},"nodes":[{"target":"torch.ops.higher_order.cond","outputs":[],"metadata":{},"inputs":[{"name":"","arg":{"as_graph":{"name":"g","graph":)" +
        graph + "}}}]}]}";
  const std::string program =
      R"({"schema_version":{"major":8,"minor":20},"graph_module":{"signature":{"input_specs":[],"output_specs":[]},"graph":)" +
      graph + "}}";
  expect_refused(make_zip({{"a/models/model.json", program}}), "pt2.nesting", "32 deep");
}
TEST(BadPt2, sample_inputs_are_ignored_with_a_warning_when_they_are_bad) {
  // An empty entry is how torch.export.save says that there are none.
  for (const auto& [content, code] : {std::pair{"junk", "pt2.sample-inputs"}, std::pair{"", ""}}) {
    auto r = read_bytes(
        with_changes(fixture("conv.pt2"), {{"sample_inputs/model.pt", [&](auto&) { return std::string(content); }}}));
    ASSERT_TRUE(r.ok()) << r.why();
    EXPECT_EQ(r.told_codes(), code);
    EXPECT_TRUE(r.samples().empty());
  }
  // Those of another program have another structure.
  auto other = zip::Archive::open(fixture("keywords.pt2"), "keywords.pt2");
  const std::string content(other->read(*other->find("archive/data/sample_inputs/model.pt"))->text());
  auto r = read_bytes(with_changes(fixture("conv.pt2"), {{"sample_inputs/model.pt", [&](auto&) { return content; }}}));
  ASSERT_TRUE(r.ok()) << r.why();
  EXPECT_EQ(r.told_codes(), "pt2.sample-inputs");
}

}  // namespace
}  // namespace tosaic::test
