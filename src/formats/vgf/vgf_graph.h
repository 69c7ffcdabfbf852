// SPDX-License-Identifier: Apache-2.0
// A TOSA graph as a VGF file with one graph segment, and the graph segments of a VGF file as one TOSA graph.
#pragma once
#include "formats/vgf/vgf.h"
#include "ir/graph.h"

namespace tosaic::vgf {

// Inputs and outputs keep their names; constants of more than 16 elements lie outside the module, each once.
// Errors: spirv.* where an operator or type has no form in SPIR-V.
Result<File> from_graph(const Graph& graph);
// Segments in order, joined by the resources that they share. Errors: vgf.compute-segment (a shader is not TOSA),
// vgf.unconnected, vgf.format, spirv.*.
Result<Graph> to_graph(const File& file);

// What a tensor of the file is: the type of a resource that TOSA has. Errors: vgf.format, vgf.dynamic.
Result<TensorType> type_of(const File& file, std::uint32_t resource);
// The graph of one graph segment, with as many inputs and outputs as the segment names resources.
Result<Graph> graph_of(const File& file, const Segment& segment);

// The graph of a whole file, held to TOSA's rules. `name` is for messages.
Result<Graph> read_graph(const Bytes& bytes, const std::string& name);

// Vulkan's format of a tensor's elements; nullopt: none. `is_unsigned`: how a RESCALE reads or writes the tensor.
std::optional<std::uint32_t> format_of(DType type, bool is_unsigned);
std::optional<DType> dtype_of_format(std::uint32_t format);
std::string name_of_format(std::uint32_t format);  // "R8_SINT"; "format 7" for those that tensors do not have

}  // namespace tosaic::vgf
