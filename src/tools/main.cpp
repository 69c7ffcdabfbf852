// SPDX-License-Identifier: Apache-2.0
// The tool is a function of a library, which the Python package has once for its module and its command.
#include "tosaic/export.hpp"

namespace tosaic::tools {
TOSAIC_API int run_tool(int argc, char** argv);
}

int main(int argc, char** argv) { return tosaic::tools::run_tool(argc, argv); }
