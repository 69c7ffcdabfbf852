// SPDX-License-Identifier: Apache-2.0
// A TOSA graph as a VGF file with one graph segment, and the graph segments of a VGF file as one TOSA graph.
#pragma once
#include "formats/spirv/graph/graph_module.h"
#include "formats/vgf/vgf.h"
#include "ir/graph.h"

namespace tosaic::vgf {

// Inputs and outputs keep their names; constants of more than a few elements lie outside the module, each once. CUSTOM
// operators that are shaders are compute segments, between graph segments.
// Errors: spirv.* where an operator or type has no form in SPIR-V.
Result<File> from_graph(const Graph& graph, const spirv::WriteOptions& options = {});
// Segments in order, joined by the resources that they share; a shader becomes a CUSTOM operator. Errors:
// vgf.compute-segment, vgf.unconnected, vgf.format, spirv.*.
Result<Graph> to_graph(const File& file);

// What a tensor of the file is: the type of a resource that TOSA has. Errors: vgf.format, vgf.dynamic.
Result<TensorType> type_of(const File& file, std::uint32_t resource);
// The graph of one graph segment, with as many inputs and outputs as the segment names resources. `bindings` receives
// those of the inputs, then of the outputs: the segment's lists are in another order where Arm's converter cut a graph.
Result<Graph> graph_of(const File& file, const Segment& segment, std::vector<spirv::Word>* bindings = nullptr);

// The graph of a whole file, held to TOSA's rules. `name` is for messages.
Result<Graph> read_graph(const Bytes& bytes, const std::string& name);

// Vulkan's format of a tensor's elements; nullopt: none. `is_unsigned`: how a RESCALE reads or writes the tensor.
std::optional<std::uint32_t> format_of(DType type, bool is_unsigned);
std::optional<DType> dtype_of_format(std::uint32_t format);
std::string name_of_format(std::uint32_t format);  // "R8_SINT"; "format 7" for those that tensors do not have

}  // namespace tosaic::vgf
