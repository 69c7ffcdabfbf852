// SPDX-License-Identifier: GPL-2.0-or-later
// An Ethos-U in QEMU's board mps3-an547, as a plug-in that QEMU loads: README.md.
//
// QEMU has no interface for devices from outside. Distributions build it with modules, though, and then its own
// functions are visible to what it loads. The few that are needed are declared here, as QEMU 7.2 has them; nothing is
// taken from its sources.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tosaic/ethosu_device.h"

extern "C" {

// ---- what QEMU offers ------------------------------------------------------------------------------------------

struct MemoryRegion;
struct AddressSpace;
struct Object;
struct IRQState;

// Of an access to memory: bits 0 unspecified, 1 secure, 2 user.
struct MemTxAttrs {
  unsigned bits;
};

struct MemoryRegionOps {
  std::uint64_t (*read)(void*, std::uint64_t address, unsigned size);
  void (*write)(void*, std::uint64_t address, std::uint64_t data, unsigned size);
  void* read_with_attrs;
  void* write_with_attrs;
  int endianness;  // 2: little
  struct {
    unsigned min_access_size, max_access_size;
    bool unaligned;
    void* accepts;
  } valid;
  struct {
    unsigned min_access_size, max_access_size;
    bool unaligned;
  } impl;
};

struct Notifier {
  void (*notify)(Notifier*, void*);
  void* next;
  void* previous;
};

void qemu_add_machine_init_done_notifier(Notifier*);
void qemu_register_reset(void (*function)(void*), void*);
MemoryRegion* get_system_memory(void);
void memory_region_init_io(MemoryRegion*, Object* owner, const MemoryRegionOps*, void* user, const char* name,
                           std::uint64_t size);
void memory_region_add_subregion_overlap(MemoryRegion* container, std::uint64_t offset, MemoryRegion*, int priority);
MemoryRegion* sysbus_mmio_get_region(Object* device, int number);
void address_space_init(AddressSpace*, MemoryRegion*, const char* name);
std::uint32_t address_space_rw(AddressSpace*, std::uint64_t address, MemTxAttrs, void* data, std::uint64_t bytes,
                               bool writes);
Object* object_resolve_path_type(const char* path, const char* type, bool* ambiguous);
IRQState* qdev_get_gpio_in_named(Object* device, const char* name, int number);
void qemu_set_irq(IRQState*, int level);

// ---- the device ------------------------------------------------------------------------------------------------

}  // extern "C"

namespace {

constexpr std::uint64_t secure_alias = 0x10000000;  // the same place, for who is in the secure world, or is not

struct Npu {
  std::string target = "ethos-u55-128";
  std::uint64_t base = 0x48102000;
  int interrupt = 56;
  bool quiet = false;
  tosaic_ethosu_device* device = nullptr;
  IRQState* line = nullptr;
  AddressSpace* memory = nullptr;
};
Npu npu;

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "tosaic_npu: %s\n", why.c_str());
  std::exit(1);
}

// Larger than any structure of QEMU's: how large they are is its own business.
template <class T>
T* new_structure() {
  return static_cast<T*>(std::calloc(1, 4096));
}

// The subsystem's memory as its core sees it, but for the core's own, tightly coupled memories, which are not on the
// bus.
int reach(std::uint64_t address, void* data, std::uint64_t bytes, bool writes) {
  constexpr std::uint64_t data_memory = 0x20000000, coupled_bytes = 512 * 1024;
  if (address < 0x40000000 && (address & ~secure_alias & ~data_memory) < coupled_bytes) return 1;
  constexpr unsigned secure = 2;
  return address_space_rw(npu.memory, address, {secure}, data, bytes, writes) != 0;
}

void open_device() {
  tosaic_ethosu_device_options options{};
  options.struct_bytes = sizeof options;
  if (std::sscanf(npu.target.c_str(), "ethos-u%u-%u", &options.product, &options.macs) != 2)
    stop("target=" + npu.target + " is not of the form ethos-u55-128");
  tosaic_ethosu_host host{};
  host.read = [](void*, std::uint64_t address, void* to, std::uint64_t bytes) {
    return reach(address, to, bytes, false);
  };
  host.write = [](void*, std::uint64_t address, const void* from, std::uint64_t bytes) {
    return reach(address, const_cast<void*>(from), bytes, true);
  };
  host.interrupt = [](void*, int level) { qemu_set_irq(npu.line, level); };
  host.report = [](void*, const char* code, const char* message) {
    if (!npu.quiet) std::fprintf(stderr, "tosaic_npu: error[%s]: %s\n", code, message);
  };
  tosaic_ethosu_error why{};
  if (tosaic_ethosu_device_open(&options, &host, &npu.device, &why)) stop(why.message);
}

// The board is there: the registers replace the stub at their address, the interrupt is one of the subsystem's.
void connect(Notifier*, void*) {
  Object* const subsystem = object_resolve_path_type("", "sse-300", nullptr);
  if (!subsystem) stop("this machine has no SSE-300 subsystem; run it with -machine mps3-an547");
  constexpr int first_outside = 32;
  npu.line = qdev_get_gpio_in_named(subsystem, "EXP_IRQ", npu.interrupt - first_outside);
  npu.memory = new_structure<AddressSpace>();
  address_space_init(npu.memory, sysbus_mmio_get_region(subsystem, 0), "tosaic-npu");
  open_device();
  static const MemoryRegionOps registers = {
      [](void*, std::uint64_t address, unsigned) {
        return std::uint64_t{tosaic_ethosu_device_read(npu.device, static_cast<std::uint32_t>(address))};
      },
      [](void*, std::uint64_t address, std::uint64_t data, unsigned) {
        tosaic_ethosu_device_write(npu.device, static_cast<std::uint32_t>(address), static_cast<std::uint32_t>(data));
      },
      nullptr,
      nullptr,
      2,
      {4, 4, false, nullptr},
      {4, 4, false}};
  for (const std::uint64_t at : {npu.base, npu.base ^ secure_alias}) {
    auto* const region = new_structure<MemoryRegion>();
    memory_region_init_io(region, nullptr, &registers, nullptr, "tosaic-npu",
                          tosaic_ethosu_device_register_bytes(npu.device));
    memory_region_add_subregion_overlap(get_system_memory(), at, region, 1);
  }
  qemu_register_reset([](void*) { tosaic_ethosu_device_reset(npu.device); }, nullptr);
}

void take_option(const std::string& option) {
  const std::size_t equals = option.find('=');
  const std::string name = option.substr(0, equals),
                    value = equals == std::string::npos ? "" : option.substr(equals + 1);
  char* end = nullptr;
  if (name == "target" && !value.empty()) {
    npu.target = value;
    return;
  }
  const unsigned long long number = std::strtoull(value.c_str(), &end, 0);
  const bool good = !value.empty() && *end == 0;
  if (name == "base" && good && number % 0x1000 == 0)
    npu.base = number;
  else if (name == "irq" && good && number >= 32 && number < 128)
    npu.interrupt = static_cast<int>(number);
  else if (name == "quiet" && (value == "on" || value == "off"))
    npu.quiet = value == "on";
  else
    stop("unknown option " + option + "; there are target=ethos-u55-128, base=0x48102000, irq=56, quiet=off");
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int qemu_plugin_install(std::uint64_t, const void*, int count, char** options) {
  for (int i = 0; i < count; ++i) take_option(options[i]);
  static Notifier ready{connect, nullptr, nullptr};
  qemu_add_machine_init_done_notifier(&ready);
  return 0;
}

}  // extern "C"
