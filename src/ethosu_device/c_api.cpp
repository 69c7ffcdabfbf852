// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "ethosu/c_api.h"
#include "ethosu_device/device.h"

struct tosaic_ethosu_device {
  tosaic::ethosu_device::Device device;
};

namespace {

int refuse(tosaic_ethosu_error* error, int status, std::string_view code, std::string_view message) {
  tosaic::ethosu::fill_error(error, code, message);
  return status;
}

int open_device(const tosaic_ethosu_device_options& given, const tosaic_ethosu_host& host,
                tosaic_ethosu_device** device, tosaic_ethosu_error* error) {
  auto config = tosaic::ethosu_device::config_of(given.product, given.macs);
  if (config.ok() && (given.config || given.id))
    config = tosaic::ethosu::parse_config(given.config ? given.config : config->config_word,
                                          given.id ? given.id : config->id_word);
  if (!config.ok()) return refuse(error, TOSAIC_ETHOSU_ARGUMENT, config.error().code, config.error().message);
  tosaic::ethosu::Options options;
  options.threads = tosaic::ethosu::threads_for(given.threads);
  if (given.most_work > 0) options.most_work = given.most_work;
  *device = new tosaic_ethosu_device{{*config, options, given.deferred != 0, host}};
  return TOSAIC_ETHOSU_OK;
}

}  // namespace

extern "C" {

int tosaic_ethosu_device_open(const tosaic_ethosu_device_options* options, const tosaic_ethosu_host* host,
                              tosaic_ethosu_device** device, tosaic_ethosu_error* error) {
  constexpr std::string_view argument = "ethosu.argument";
  if (!options || !host || !device) return refuse(error, TOSAIC_ETHOSU_ARGUMENT, argument, "a null argument");
  *device = nullptr;
  if (options->struct_bytes != sizeof(tosaic_ethosu_device_options))
    return refuse(error, TOSAIC_ETHOSU_ARGUMENT, argument, "options of another version of this header");
  if (!host->memory && (!host->read || !host->write))
    return refuse(error, TOSAIC_ETHOSU_ARGUMENT, argument, "the host gives no access to memory");
  try {
    return open_device(*options, *host, device, error);
  } catch (const std::bad_alloc&) { return refuse(error, TOSAIC_ETHOSU_MEMORY, "ethosu.memory", "out of memory"); }
}

uint32_t tosaic_ethosu_device_read(tosaic_ethosu_device* device, uint32_t offset) {
  return device->device.read(offset);
}

void tosaic_ethosu_device_write(tosaic_ethosu_device* device, uint32_t offset, uint32_t value) {
  device->device.write(offset, value);
}

uint32_t tosaic_ethosu_device_register_bytes(const tosaic_ethosu_device* device) {
  return device->device.register_bytes();
}

int tosaic_ethosu_device_work(tosaic_ethosu_device* device) { return device->device.work() ? 1 : 0; }

void tosaic_ethosu_device_reset(tosaic_ethosu_device* device) { device->device.reset(); }

void tosaic_ethosu_device_close(tosaic_ethosu_device* device) { delete device; }

}  // extern "C"
