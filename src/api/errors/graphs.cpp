// SPDX-License-Identifier: Apache-2.0
// Graphs as files: TOSA, VGF, SPIR-V, text.
#include "api/errors/families.h"

namespace tosaic {
namespace {

constexpr std::string_view tosa_again = "make it again for TOSA 1.0, e.g. with `tosaic compile --emit tosa=FILE`";
constexpr std::string_view vgf_again =
    "make it again: `tosaic compile --target vgf`, or `tosaic convert` from the .tosa";

ErrorFamily tosa_file() {
  return {"tosa-file",
          "a .tosa file is damaged, is of another version, or cannot be written",
          tosa_again,
          "$ tosaic run net.tosa\n"
          "net.tosa: error[tosa-file.corrupt]: the TOSA file is damaged, or was made by another version",
          {
              {"attribute", "an attribute of an operator is missing or has a wrong value"},
              {"constant", "a boolean constant holds something else than 0 and 1"},
              {"constant-outside", "a constant is in a data file that is not given", "--data FILE.ptd"},
              {"constant-size", "a constant has more or fewer bytes than its type needs"},
              {"corrupt", "the TOSA file is damaged, or was made by another version", "", true},
              {"dtype", "a tensor has a type that TOSA does not have"},
              {"dynamic", "a tensor's sizes are not fixed"},
              {"empty", "the file has no graph or no outputs"},
              {"name", "a name is defined twice or not at all"},
              {"nesting", "branches or loops are nested too deep"},
              {"newer", "the file is of TOSA 1.1, of which there are drafts only", "nothing, if it works"},
              {"not-tosa", "the file is no TOSA flatbuffer, or an operator is none of TOSA"},
              {"operator", "an operator is not in TOSA, or has the wrong number of operands"},
              {"region", "a region is missing"},
              {"size", "a dimension is beyond what TOSA takes",
               "choose smaller sizes (--sizes), or export the model for smaller inputs"},
              {"state", "a buffer cannot be written as a TOSA variable"},
              {"too-large", "the graph is larger than a flatbuffer may be",
               "write the .pte, which keeps large constants outside the flatbuffer, or quantise the weights"},
              {"variable", "a variable is used wrongly"},
              {"version", "the file is of a version of TOSA that tosaic does not read or write"},
          }};
}

ErrorFamily vgf() {
  return {"vgf",
          "a .vgf file is damaged, has what tosaic does not run, or cannot be made",
          vgf_again,
          "$ tosaic convert net.txt -o net.vgf --vgf-converter nowhere/model-converter\n"
          "net.txt: error[vgf.converter-missing]: nowhere/model-converter is not a program that can be run",
          {
              {"compute-segment", "a segment is a shader without workgroups"},
              {"converter-failed", "Arm's model converter failed",
               "leave --vgf-converter out: tosaic writes VGF files itself"},
              {"converter-missing", "Arm's model converter is not installed",
               "leave --vgf-converter out: tosaic writes VGF files itself"},
              {"corrupt", "the VGF file is damaged, or was made by another version", "", true},
              {"dynamic", "a tensor's sizes are open"},
              {"empty", "the model has no outputs"},
              {"flag", "tosaic's VGF converter does not have the flag", "`tosaic help convert` lists them"},
              {"format", "a tensor has a type that Vulkan or TOSA does not have"},
              {"index", "the VGF file is damaged, or was made by another version", "", true},
              {"no-code", "a module has no SPIR-V"},
              {"not-a-vgf", "the file is no VGF file"},
              {"shader", "the attributes of a custom shader cannot be read"},
              {"truncated", "the VGF file is cut short", "", true},
              {"unconnected", "the VGF file is damaged, or was made by another version", "", true},
              {"version", "the file has a version that tosaic does not read"},
          }};
}

ErrorFamily spirv() {
  return {"spirv",
          "a graph or shader in a VGF file cannot be read or written",
          vgf_again,
          "$ tosaic run net.vgf\n"
          "net.vgf: error[spirv.version]: the module has SPIR-V version 2.0, tosaic reads up to 1.6",
          {
              {"corrupt", "the shader code in the VGF file is damaged, or was made by another version", "", true},
              {"dynamic", "a tensor has no fixed shape"},
              {"instruction-set", "an instruction is of another set than TOSA's"},
              {"no-entry-point", "the module lacks its entry point"},
              {"no-graph", "the module lacks its graph"},
              {"no-instruction", "an operator has no instruction in SPIR-V", "choose another target"},
              {"not-spirv", "the module is no SPIR-V"},
              {"type", "a tensor has a type or size that SPIR-V does not take"},
              {"version", "the module has a version that tosaic does not read"},
          }};
}

ErrorFamily ir() {
  return {"ir",
          "a graph as text cannot be read",
          "correct the graph's text at this place",
          "$ tosaic run net.txt\n"
          "net.txt:1: error[ir.text]: expected '->', found \"{\"",
          {
              {"brief-constant", "a constant's data was left out when the text was printed",
               "print it with --print-after from a program with small weights, or use a .tosa file"},
              {"constant-size", "a constant has more or fewer elements than its type"},
              {"duplicate-name", "a name is given twice"},
              {"nesting", "graphs are nested too deep"},
              {"node", "a node has no operator"},
              {"redefined-value", "a value is defined twice"},
              {"state", "a buffer is read and written inconsistently"},
              {"text", "there is a syntax error"},
              {"type", "a type is impossible or cannot be read"},
              {"undefined-value", "a value is used before it is defined"},
              {"value-id", "a value does not belong to the graph"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_graphs() { return {tosa_file(), vgf(), spirv(), ir()}; }

}  // namespace tosaic
