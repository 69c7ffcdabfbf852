// SPDX-License-Identifier: Apache-2.0
// What torch.export.save wrote is what the graph says.
#include "read/fixture.h"

#include "ir/aten_operators.h"
#include "ir/program_operators.h"

namespace tosaic::test {
namespace {

std::vector<float> floats(const Value* value) {
  if (!value || value->constant.size() % 4 != 0) return {};
  auto span = value->constant.as<float>();
  return {span.begin(), span.end()};
}

std::vector<std::string> ops(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& n : graph.nodes) names.push_back(n.op.text());
  return names;
}

TEST(ReadPt2, raw_program_keeps_composites_and_in_place_calls) {
  auto r = read_fixture("conv.pt2");
  EXPECT_EQ(r.program->torch_version.substr(0, 4), "2.13");
  EXPECT_EQ(r.program->schema_major, 8);
  EXPECT_EQ(r.program->methods[0].name, "forward");
  EXPECT_NE(r.program->methods[0].input_spec.find("builtins.tuple"), std::string::npos);
  EXPECT_FALSE(r.program->methods[0].output_spec.empty());
  EXPECT_EQ(r.told_codes(), "");
  EXPECT_EQ(ops(r.graph()),
            (std::vector<std::string>{"aten.conv2d.default", "aten.batch_norm.default", "aten.relu_.default",
                                      "aten.add_.Tensor", "aten.mean.dim", "aten.dropout.default",
                                      "aten.linear.default", "aten.mul.Tensor"}));
  ASSERT_EQ(r.graph().inputs.size(), 1u);
  EXPECT_EQ(to_string(r.graph()[r.graph().inputs[0]].type), "1x3x4x4xf32");
  // The mean and variance are read, the counter of batches is not: no node uses it.
  EXPECT_NE(r.value("b_bn_running_mean"), nullptr);
  EXPECT_EQ(r.value("b_bn_num_batches_tracked"), nullptr);
  EXPECT_TRUE(r.graph().states.empty()) << "an in-place call on an activation is no state";
}

TEST(ReadPt2, arguments_have_their_schemas_names) {
  auto r = read_fixture("conv.pt2");
  const Node* conv = r.node("conv2d");
  ASSERT_TRUE(conv);
  ASSERT_EQ(conv->inputs.size(), 3u);
  EXPECT_EQ(r.graph()[conv->inputs[1]].name, "p_conv_weight");
  EXPECT_EQ(conv->attrs.get<std::vector<std::int64_t>>("padding"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(conv->attrs.find("groups"), nullptr) << "defaults are left out";
  EXPECT_EQ(r.node("batch_norm")->attrs.get<double>("eps"), 1e-05);
  EXPECT_EQ(r.node("batch_norm")->attrs.get<bool>("training"), false);
  const Node* mul = r.node("mul");
  EXPECT_EQ(mul->attrs.get<std::int64_t>("other"), 2) << "a number in a tensor's place stays a number";
  EXPECT_EQ(mul->inputs[0], r.graph().nodes[6].outputs[0]);
}

TEST(ReadPt2, every_node_has_a_place_in_the_users_source) {
  auto r = read_fixture("conv.pt2");
  const Loc& loc = *r.node("conv2d")->loc;
  EXPECT_EQ(loc.place.file, "make_pt2.py");
  EXPECT_EQ(loc.place.text, "y = self.act(self.bn(self.conv(x)))")
      << "the frame below it is in torch/nn/modules/conv.py";
  EXPECT_EQ(loc.module_path, "conv");
  EXPECT_EQ(loc.module_type, "torch.nn.modules.conv.Conv2d");
  EXPECT_EQ(loc.torch_function, "conv2d_1");
  EXPECT_EQ(loc.op, "aten.conv2d.default");
  EXPECT_EQ(loc.name, "conv2d");
  for (const char* file : {"conv.pt2", "conv_decomposed.pt2", "storages.pt2", "cond.pt2"}) {
    auto other = read_fixture(file);
    for (const Node& n : other.graph().nodes) {
      ASSERT_TRUE(n.loc) << n.op.name();
      EXPECT_EQ(n.loc->place.file, "make_pt2.py") << file << ": " << n.op.name();
      EXPECT_GT(n.loc->place.line, 0) << file << ": " << n.op.name();
    }
  }
}

TEST(ReadPt2, made_up_frames_are_no_place) {
  auto r = read_fixture("dynamic.pt2");
  const Node* size = r.node("sym_size_int_1");
  ASSERT_TRUE(size);
  EXPECT_EQ(size->loc->place.file, "") << "torch/fx/passes/runtime_assert.py made it";
  EXPECT_EQ(size->loc->module_path, "");
}

TEST(ReadPt2, decomposed_program) {
  auto r = read_fixture("conv_decomposed.pt2");
  const Node* conv = r.node("convolution");
  ASSERT_TRUE(conv);
  EXPECT_EQ(conv->attrs.get<std::int64_t>("groups"), 1);
  const Node* norm = r.node("getitem");
  ASSERT_TRUE(norm);
  ASSERT_EQ(norm->outputs.size(), 3u);
  EXPECT_EQ(to_string(r.graph()[norm->outputs[1]].type), "0xf32");
  // The same weights as before the decomposition.
  EXPECT_EQ(floats(r.value("p_conv_weight")), floats(read_fixture("conv.pt2").value("p_conv_weight")));
}

TEST(ReadPt2, weights_of_a_mapped_file_are_not_copied) {
  auto bytes = fixture("conv.pt2");
  auto r = read_bytes(bytes);
  ASSERT_TRUE(r.ok());
  const Bytes& weight = r.value("p_conv_weight")->constant;
  EXPECT_GE(weight.data(), bytes.data());
  EXPECT_LE(weight.data() + weight.size(), bytes.data() + bytes.size());
}

TEST(ReadPt2, torch_28_keeps_its_weights_in_a_pickle) {
  auto now = read_fixture("conv.pt2"), then = read_fixture("conv_torch28.pt2");
  EXPECT_EQ(then.told_codes(), "pt2.old-torch");
  EXPECT_EQ(then.program->schema_minor, 8);
  EXPECT_EQ(now.text(), then.text());
}

TEST(ReadPt2, torch_27_has_no_folders) {
  auto archive = zip::Archive::open(fixture("conv_torch28.pt2"), "conv_torch28.pt2");
  const std::pair<const char*, const char*> names[] = {{"models/model.json", "serialized_exported_program.json"},
                                                       {"data/weights/model.pt", "serialized_state_dict.pt"},
                                                       {"data/constants/model.pt", "serialized_constants.pt"},
                                                       {"data/sample_inputs/model.pt", "serialized_example_inputs.pt"}};
  std::vector<std::pair<std::string, std::string>> records{{"version", "8.7"}};
  for (const auto& entry : archive->entries())
    for (auto [now, then] : names)
      if (entry.name.ends_with(now)) records.emplace_back(then, std::string(archive->read(entry)->text()));
  ASSERT_EQ(records.size(), 5u);
  auto r = read_bytes(make_zip(records));
  ASSERT_TRUE(r.ok()) << r.why();
  EXPECT_EQ(r.told_codes(), "pt2.old-torch");
  EXPECT_EQ(r.text(), read_fixture("conv.pt2").text());
  EXPECT_EQ(r.samples().size(), 1u);
}

TEST(ReadPt2, tied_weights_share_their_bytes) {
  auto r = read_fixture("tied.pt2");
  const Node* embedding = nullptr;
  const Node* linear = nullptr;
  for (const Node& n : r.graph().nodes) (n.op == aten::op::embedding ? embedding : linear) = &n;
  ASSERT_TRUE(embedding && linear);
  const Value& a = r.graph()[embedding->inputs[0]];
  const Value& b = r.graph()[linear->inputs[1]];
  EXPECT_TRUE(a.is_constant());
  EXPECT_EQ(a.constant.data(), b.constant.data());
  EXPECT_EQ(to_string(a.type), "7x4xf32");
}

TEST(ReadPt2, sliced_and_transposed_storages_become_dense) {
  auto r = read_fixture("storages.pt2");
  EXPECT_EQ(floats(r.value("b_sliced")), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(floats(r.value("b_turned")), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(to_string(r.value("b_turned")->type), "3x2xf32");
  EXPECT_EQ(r.value("b_unused"), nullptr);
}

TEST(ReadPt2, channels_last_weight_becomes_row_major) {
  auto archive = fixture("storages.pt2");
  auto r = read_bytes(archive);
  ASSERT_TRUE(r.ok());
  auto zip = zip::Archive::open(archive, "storages.pt2");
  auto stored = zip->read(*zip->find("archive/data/weights/weight_0"));
  auto raw = stored->as<float>();
  auto dense = floats(r.value("p_conv_weight"));
  ASSERT_EQ(dense.size(), 54u);
  for (int n = 0; n < 2; ++n)
    for (int c = 0; c < 3; ++c)
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 3; ++x)
          EXPECT_EQ(dense[static_cast<std::size_t>(((n * 3 + c) * 3 + y) * 3 + x)],
                    raw[static_cast<std::size_t>(((n * 3 + y) * 3 + x) * 3 + c)]);
}

TEST(ReadPt2, constants_and_non_persistent_buffers) {
  auto r = read_fixture("storages.pt2");
  ASSERT_TRUE(r.value("b_temporary") && r.value("c_plain") && r.value("c_lifted_tensor_0"));
  EXPECT_EQ(r.value("b_temporary")->constant.as<std::int64_t>()[1], 6);
  EXPECT_EQ(to_string(r.value("c_plain")->type), "2xbool");
  EXPECT_EQ(r.value("c_plain")->constant.as<std::uint8_t>()[0], 1);
  EXPECT_EQ(floats(r.value("c_lifted_tensor_0")), (std::vector<float>{1, 2, 3, 4}));
}

TEST(ReadPt2, weights_that_are_not_finite_are_told) {
  auto r = read_fixture("storages.pt2");
  ASSERT_EQ(r.told_codes(), "pt2.not-finite");
  EXPECT_EQ(r.told[0].severity, Severity::warning);
  EXPECT_EQ(r.told[0].message, "buffer 'broken' holds 1 NaN and 1 infinite of 4 elements");
}

TEST(ReadPt2, several_outputs_keep_their_names) {
  auto r = read_fixture("several.pt2");
  const Node* split = r.node("getitem");
  ASSERT_TRUE(split);
  EXPECT_EQ(split, r.node("getitem_1"));
  EXPECT_EQ(split->op, aten::op::split_with_sizes);
  EXPECT_EQ(to_string(r.value("getitem_1")->type), "2x2xf32");
  EXPECT_EQ(r.node("getitem_3")->op, aten::op::max_dim);
  EXPECT_EQ(to_string(r.value("getitem_3")->type), "2xi64");
  EXPECT_EQ(r.graph().outputs.size(), 5u);
}

TEST(ReadPt2, tensor_lists_stand_in_place_and_none_is_no_value) {
  auto r = read_fixture("several.pt2");
  const Node* stack = r.node("stack");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->inputs.size(), 2u);
  EXPECT_EQ(stack->inputs[0], stack->inputs[1]);
  const Node* index = r.node("index");
  ASSERT_TRUE(index);
  ASSERT_EQ(index->inputs.size(), 3u);
  EXPECT_EQ(index->inputs[1], no_value);
  EXPECT_EQ(r.graph()[index->inputs[2]].name, "detach_");
}

TEST(ReadPt2, every_kind_of_argument) {
  auto r = read_fixture("arguments.pt2");
  EXPECT_EQ(r.node("gelu")->attrs.get<std::string>("approximate"), "tanh");
  EXPECT_EQ(r.node("to")->attrs.get<DType>("dtype"), DType::f16);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*r.node("clamp")->attrs.find("min")));
  EXPECT_EQ(r.node("clamp")->attrs.get<double>("max"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(r.node("zeros")->attrs.get<std::string>("device"), "cpu");
  EXPECT_EQ(r.node("zeros")->attrs.get<DType>("dtype"), DType::i32);
  EXPECT_EQ(r.node("slice_1")->attrs.get<std::int64_t>("end"), INT64_MAX) << "integers are not read as doubles";
  const Node* noise = nullptr;
  for (const Node& n : r.graph().nodes)
    if (n.outputs.empty()) noise = &n;
  ASSERT_TRUE(noise) << "assertions are kept: normalise drops them";
  EXPECT_EQ(noise->attrs.get<std::string>("layout"), "strided");
}

TEST(ReadPt2, dynamic_sizes_are_expressions_with_bounds) {
  auto r = read_fixture("dynamic.pt2");
  EXPECT_EQ(to_string(r.value("x")->type), "(s77 in 2..16)x4xf32");
  EXPECT_EQ(to_string(r.value("reshape")->type), "(3*s77 for s77 in 2..16)xf32");
  EXPECT_EQ(to_string(r.value("cat")->type), "(2*s77 + 1 for s77 in 2..16)x4xf32");
  EXPECT_EQ(r.value("x")->type.shape[0].bounds(), (Bounds{2, 16}));
  EXPECT_EQ(to_string(*r.value("sym_size_int_1")->size), "s77");
  EXPECT_EQ(r.node("mul")->attrs.get<SymbolicArgument>("a").name, "sym_size_int_1");
  EXPECT_EQ(r.node("reshape")->attrs.get<std::vector<SymbolicArgument>>("shape"),
            (std::vector{SymbolicArgument{"mul", 3 * r.value("x")->type.shape[0]}}));
  EXPECT_EQ(to_string(r.value("sym_size_int_1")->type), "i64");
  ASSERT_EQ(r.samples().size(), 1u);
  EXPECT_EQ(to_string(r.samples()[0][0].type), "5x4xf32");
}

TEST(ReadPt2, a_size_without_upper_bound_stays_without) {
  auto r = read_fixture("unbounded.pt2");
  EXPECT_EQ(r.told_codes(), "");
  EXPECT_EQ(to_string(r.value("x")->type.shape[0].bounds()), "2..");
  EXPECT_EQ(to_string(r.value("cat")->type.shape[0].bounds()), "5..");
  EXPECT_EQ(r.samples().size(), 1u) << "its sample is a tensor with Python attributes";
}

TEST(ReadPt2, control_flow_has_regions) {
  auto r = read_fixture("cond.pt2");
  const Node* cond = r.node("getitem");
  ASSERT_TRUE(cond);
  EXPECT_EQ(cond->op, higher_order::op::cond);
  EXPECT_EQ(cond->inputs.size(), 4u);
  ASSERT_EQ(cond->regions.size(), 2u);
  EXPECT_EQ(cond->regions[0].name, "true_graph_0");
  EXPECT_EQ(cond->regions[0].inputs.size(), 3u);
  EXPECT_EQ(cond->regions[0].nodes[0].op, aten::op::linear);
  EXPECT_EQ(cond->regions[1].nodes[0].op, aten::op::mul_Tensor);
  // The text form holds regions too.
  auto again = parse(print(r.graph(), ConstantText::all));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(print(*again), r.text());
}

TEST(ReadPt2, mutated_buffers_are_states) {
  auto raw = read_fixture("cache.pt2"), pure = read_fixture("cache_decomposed.pt2");
  auto states = [](const Reading& r) {
    std::string text;
    for (const State& s : r.graph().states)
      text += s.name + ":" + r.graph()[s.input].name + ">" + r.graph()[s.output].name +
              (r.graph()[s.input].is_constant() || s.initial.null() ? "! " : " ");
    return text;
  };
  // What a raw program writes through a view (window[1:3].copy_) leaves the buffer's own name as its last value.
  EXPECT_EQ(states(raw), "k:b_k>index_copy_ steps:b_steps>add_ window:b_window>b_window ");
  EXPECT_EQ(states(pure), "k:b_k>index_copy steps:b_steps>add window:b_window>slice_scatter ");
}

// ExecuTorch returns the new content of such inputs before the model's own outputs.
TEST(ReadPt2, an_input_that_is_written_to_is_the_first_output) {
  auto functional = read_fixture("writes_input.pt2");
  ASSERT_EQ(functional.graph().outputs.size(), 2u);
  EXPECT_EQ(functional.graph()[functional.graph().outputs[0]].name, "add");
  ASSERT_EQ(functional.told_codes(), "pt2.input-mutation");
  EXPECT_EQ(functional.told[0].place.text, "x.add_(1)");

  auto raw = read_fixture("kinds.pt2");  // the readers of a written tensor are what `functionalise` follows
  ASSERT_EQ(raw.graph().outputs.size(), 3u);
  EXPECT_EQ(raw.graph().outputs[0], raw.graph().inputs[0]);
  EXPECT_EQ(raw.told_codes(), "pt2.input-mutation");
  EXPECT_NE(raw.told.at(0).message.find("'x'"), std::string::npos);
}

TEST(ReadPt2, inputs_and_outputs_that_are_no_tensors_keep_their_places) {
  auto r = read_fixture("kinds.pt2");
  const Method& m = r.program->methods.at(0);
  auto all = [](const FixedValues& list) {
    std::string text;
    for (const FixedValue& f : list) text += fmt::format("{}:{} ", f.position, f.value.index());
    return text;
  };
  EXPECT_EQ(all(m.fixed_inputs), "1:2 2:1 3:0 ");       // int, bool, None behind x
  EXPECT_EQ(all(m.fixed_outputs), "2:0 3:2 4:3 5:1 ");  // x, x * 2, None, 3, 2.5, True, x
  EXPECT_EQ(std::get<std::int64_t>(m.fixed_outputs[1].value), 3);
  EXPECT_EQ(std::get<double>(m.fixed_outputs[2].value), 2.5);
  EXPECT_EQ(r.samples().size(), 1u);
}

TEST(ReadPt2, sample_inputs_come_in_the_graphs_order) {
  auto r = read_fixture("keywords.pt2");
  ASSERT_EQ(r.samples().size(), 1u);
  std::string order;
  for (ValueId v : r.graph().inputs) order += r.graph()[v].name + " ";
  EXPECT_EQ(order, "a pair_0 pair_1 options_b options_a ");
  std::vector<float> first;
  for (const Tensor& t : r.samples()[0]) first.push_back(t.data.as<float>()[0]);
  EXPECT_EQ(first, (std::vector<float>{1, 2, 3, 5, 6}));
}

TEST(ReadPt2, pt2e_nodes_are_read_as_they_stand) {
  auto r = read_fixture("pt2e.pt2");
  const Node* dq = r.node("dequantize_per_channel");
  ASSERT_TRUE(dq);
  EXPECT_EQ(dq->op, quantized_decomposed::op::dequantize_per_channel);
  ASSERT_EQ(dq->inputs.size(), 3u);
  EXPECT_EQ(to_string(r.graph()[dq->inputs[0]].type), "4x3x3x3xi8");
  EXPECT_EQ(dq->attrs.get<std::int64_t>("quant_min"), -127);
  EXPECT_EQ(dq->attrs.get<DType>("dtype"), DType::i8);
  EXPECT_EQ(r.value("p_conv_weight"), nullptr) << "the float weights are still in the archive, but nothing uses them";
  EXPECT_GT(r.node("quantize_per_tensor")->attrs.get<double>("scale"), 0);
}

TEST(ReadPt2, unknown_operators_are_read_with_their_own_names) {
  auto r = read_bytes(with_program_text("conv.pt2", "torch.ops.aten.mean.dim", "torch.ops.mine.frobnicate.default"));
  ASSERT_TRUE(r.ok()) << r.why();
  const Node* node = r.node("mean");
  EXPECT_EQ(node->op, Operator("mine.frobnicate.default"));
  EXPECT_EQ(node->inputs.size(), 1u);
  EXPECT_EQ(node->attrs.get<std::vector<std::int64_t>>("dim"), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(node->loc->place.text, "y = y.mean((2, 3))");
}

TEST(ReadPt2, positional_arguments_are_named_by_the_schema) {
  auto r =
      read_bytes(with_program_text("conv.pt2", R"({"name":"dim","arg":{"as_ints")", R"({"name":"","arg":{"as_ints")"));
  ASSERT_TRUE(r.ok()) << r.why();
  EXPECT_TRUE(r.node("mean")->attrs.find("dim"));
}

TEST(ReadPt2, newer_minor_schema_is_read_with_a_warning) {
  auto r = read_bytes(with_program_text("conv.pt2", R"("minor":20)", R"("minor":99)"));
  ASSERT_TRUE(r.ok()) << r.why();
  EXPECT_EQ(r.told_codes(), "pt2.newer-schema");
}

TEST(ReadPt2, deflated_archives_read_the_same) {
  auto r = read_bytes(with_changes(fixture("conv.pt2"), {}, true));
  ASSERT_TRUE(r.ok()) << r.why();
  EXPECT_EQ(r.text(), read_fixture("conv.pt2").text());
}

TEST(ReadPt2, weights_that_are_not_aligned_are_copied) {
  // make_zip packs records without padding, so nothing is aligned but by chance.
  auto archive = with_changes(fixture("conv.pt2"), {});
  auto r = read_bytes(archive);
  ASSERT_TRUE(r.ok()) << r.why();
  for (const Value& v : r.graph().values) {
    if (!v.is_constant()) continue;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(v.constant.data()) % storage_size(v.type.dtype), 0u) << v.name;
  }
  EXPECT_EQ(r.text(), read_fixture("conv.pt2").text());
}

TEST(ReadPt2, several_methods) {
  auto archive = zip::Archive::open(fixture("conv.pt2"), "conv.pt2");
  std::vector<std::pair<std::string, std::string>> records;
  for (const auto& entry : archive->entries()) {
    const std::string content(archive->read(entry)->text());
    records.emplace_back(entry.name, content);
    std::string twin = entry.name;
    if (auto at = twin.find("models/model.json"); at != std::string::npos)
      records.emplace_back(twin.replace(at + 7, 5, "encode"), content);
    else if (at = twin.find("model_weights_config"); at != std::string::npos)
      records.emplace_back(twin.replace(at, 5, "encode"), content);
  }
  auto r = read_bytes(make_zip(records));
  ASSERT_TRUE(r.ok()) << r.why();
  ASSERT_EQ(r.program->methods.size(), 2u);
  EXPECT_EQ(r.program->methods[0].name, "forward");
  EXPECT_EQ(r.program->methods[1].name, "encode");
  EXPECT_EQ(r.program->methods[1].graph.nodes.size(), 8u);
}

}  // namespace
}  // namespace tosaic::test
