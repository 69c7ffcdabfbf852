// SPDX-License-Identifier: Apache-2.0
// "TOSABackend" and "VgfBackend": the payload is a TOSA graph in a file format, run by the CPU executor or the
// interpreter.
#include <fmt/format.h>

#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"
#include "runtime/delegate.h"
#include "execute/executable.h"

namespace tosaic::runtime {
namespace {

// TOSA's types have no u8: unsigned codes travel as i8.
bool agree(const TensorType& program, const TensorType& graph) {
  const bool dtype = program.dtype == graph.dtype || (program.dtype == DType::u8 && graph.dtype == DType::i8);
  return dtype && program.shape.dims() == graph.shape.dims();
}

using ReadGraph = Result<Graph> (*)(const Bytes& payload, const std::string& name);

class GraphDelegate : public Delegate {
 public:
  explicit GraphDelegate(ReadGraph read) : read_(read) {}

  Status init(const Bytes& payload, std::span<const pte::CompileSpec>, std::span<const TensorType> arguments,
              const DelegateContext& context) override {
    TOSAIC_TRY(Graph graph, read_(payload, context.name));
    TOSAIC_TRY(executable_, Executable::make(std::move(graph), context.threads, context.interpret));
    interpreted_ = context.interpret;
    inputs_ = executable_->input_types().size();
    const std::size_t outputs = executable_->output_types().size();
    if (inputs_ + outputs != arguments.size())
      return error("delegate.arguments",
                   fmt::format("the graph takes {} inputs and gives {} outputs, the program passes {} tensors", inputs_,
                               outputs, arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const TensorType& wanted = i < inputs_ ? executable_->input_types()[i] : executable_->output_types()[i - inputs_];
      if (!agree(arguments[i], wanted))
        return error("delegate.arguments", fmt::format("tensor {} is {} in the program and {} in the graph", i,
                                                       to_string(arguments[i]), to_string(wanted)));
    }
    return {};
  }

  std::size_t inputs() const override { return inputs_; }
  std::string device() const override { return interpreted_ ? "interp" : "cpu"; }

  Status execute(std::span<void* const> arguments) override {
    const std::vector<const void*> inputs(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(inputs_));
    return executable_->run(inputs, arguments.subspan(inputs_));
  }

 private:
  const ReadGraph read_;
  std::optional<Executable> executable_;
  std::size_t inputs_ = 0;
  bool interpreted_ = false;
};

}  // namespace

std::unique_ptr<Delegate> tosa_delegate() { return std::make_unique<GraphDelegate>(tosa_file::read); }
std::unique_ptr<Delegate> vgf_delegate() { return std::make_unique<GraphDelegate>(vgf::read_graph); }

Delegates default_delegates(bool on_vulkan) {
  return {{"TOSABackend", tosa_delegate},
          {"VgfBackend", on_vulkan ? vgf_vulkan_delegate : vgf_delegate},
          {"EthosUBackend", ethos_u_delegate}};
}

}  // namespace tosaic::runtime
