// SPDX-License-Identifier: Apache-2.0
// Weights of products, and tables of rows, that are quantised values of 4 or 8 bits times scales by group: they stay so
// on the device. What else a program computes of constants is computed now: a device would do it anew at every run.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "shaders/kernels.h"

namespace tosaic::shaders {

// The graph with what reads such weights as tosaic.scaled_product and tosaic.scaled_gather, and every other weight as
// numbers. nullopt: it is so already.
std::optional<Graph> raise_quantised(const Graph& graph);

// [rows][depth] quantised values as words, and a scale for each group of neighbours in a row; four rows are next to
// each other.
struct QuantisedMatrix {
  std::int64_t rows = 0, depth = 0, group = 0;
  int bits = 8;
  // Int8 x int8 GEMMs want neighbours in a word, all others (and tables that only they read) rows.
  bool by_depth = false;
  // i32 [rows / 4][depth / per_word()]: bytes of four rows; of 4 bits, those of two neighbours, plus 8.
  // By depth [rows / 4][depth / per_word()][4]: bytes of four neighbours; of 4 bits, further four in the upper halves.
  Bytes words;
  Bytes scales;  // f32 [rows / 4][depth / group][4]
  std::int64_t per_word() const { return (bits == 4 ? 2 : 1) * (by_depth ? 4 : 1); }
  std::int64_t quads() const { return (rows + 3) / 4; }
  bool has_groups() const { return group < depth; }
};
// The weight or table that `node` reads; null: it has no quantised values.
bool has_quantised_weight(const Graph& graph, const Node& node);
std::shared_ptr<const QuantisedMatrix> find_quantised_matrix(const Work& work, const Node& node);
// What tiers, kernels and their attempts share: by the quantised values, and whether words lie along the depth.
struct QuantisedMatrices {
  std::map<std::pair<ValueId, bool>, std::shared_ptr<const QuantisedMatrix>> known;
};
// Does the product multiply quantised values of its activations as well?
bool multiplies_int8(const Graph& graph, const Node& node);
// What programs call its dispatches: as TOSA calls the product that it is.
std::string name_of_product(const Node& node);

// Products by such weights, in the profile of floats; rows of such tables.
bool takes_quantised_product(const tosa::View& view);
MadeList make_quantised_product(const Work&, const Node&, const Finish&);
bool takes_few_quantised_rows(const tosa::View& view);
MadeList make_quantised_row_product(const Work&, const Node&, const Finish&);
MadeList make_quantised_tiled_product(const Work&, const Node&, const Finish&);  // product.cpp
// Of int8 x int8 GEMMs.
bool takes_int8_gemm(const tosa::View& view);
MadeList make_int8_gemm(const Work&, const Node&, const Finish&);
bool takes_few_int8_rows(const tosa::View& view);
MadeList make_int8_row_gemm(const Work&, const Node&, const Finish&);
bool takes_many_int8_rows(const tosa::View& view);
MadeList make_tiled_int8_gemm(const Work&, const Node&, const Finish&);     // int8_gemm_tile.cpp
MadeList make_subgroup_int8_gemm(const Work&, const Node&, const Finish&);  // int8_gemm_subgroup.cpp
MadeList make_quantised_gather(const Work&, const Node&, const Finish&);

}  // namespace tosaic::shaders
