// SPDX-License-Identifier: Apache-2.0
// Firmware: building it, and what it says itself.
#include "api/errors/families.h"

namespace tosaic {
namespace {

ErrorFamily device() {
  return {"device",
          "a firmware cannot be built around the program, or ended with an error on the board",
          "docs/devices.md says what a board has, and what a program may need",
          "$ tosaic device build net.pte --board mps3-an547 -o net.elf\n"
          "net.pte: error[device.delegate]: the program needs the delegate 'TOSABackend', firmware has 'EthosUBackend' "
          "alone",
          {
              {"arena", "the arena is smaller than what the program needs while it is loaded",
               "build the firmware without --arena: `tosaic inspect` says how much is enough"},
              {"board", "there is no such board"},
              {"delegate", "the program needs a delegate that firmware does not have",
               "compile the model for a target ethos-u..."},
              {"fault", "the processor met an instruction or an address that it cannot use",
               "a stack that is too small, or memory that the board does not have, are the usual reasons"},
              {"heap", "the C library asks for a heap, which firmware does not have"},
              {"input", "an input's file is missing, or of another type than the program takes"},
              {"libraries", "the libraries that firmware is made of are not here", "build them: `make device`"},
              {"link", "the firmware's parts do not go together", "build its libraries again: `make device`"},
              {"memory", "the program does not fit a memory of the board"},
              {"methods", "firmware runs programs of one method"},
              {"no-program", "the firmware has no program inside, and is given none"},
              {"output", "an output cannot be written"},
              {"run", "the file is no firmware, or what it did ended with an error"},
              {"sealed", "a run asked for memory, which firmware has no more of after loading"},
              {"tool", "a program of another package is not installed",
               "apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib "
               "qemu-system-arm"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_boards() { return {device()}; }

}  // namespace tosaic
