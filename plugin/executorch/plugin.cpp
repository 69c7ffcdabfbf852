// SPDX-License-Identifier: Apache-2.0
// tosaic's delegates as backends of ExecuTorch: loading this library registers them.
#include <dlfcn.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/executor/program.h>

#include <atomic>
#include <fstream>
#include <mutex>
#include <new>
#include <string>

#include "log.h"
#include "opened.h"
#include "options.h"
#include "tosaic/delegate.h"
#include "tosaic/executorch.h"
#include "tosaic/printable.hpp"

namespace tosaic::plugin {
namespace {

using namespace executorch::runtime;

// A backend is a row: the name is the table's own.
struct Row {
  const tosaic_delegate_api* (*table)();
  const char* note;  // said once, when the first payload is opened; null: nothing
};
constexpr Row rows[] = {
    {tosaic_tosa_delegate, nullptr},
    {tosaic_vgf_delegate, nullptr},
    {tosaic_vulkan_delegate, nullptr},
    {tosaic_vulkan_backend_delegate, nullptr},
    {tosaic_ethos_u_delegate,
     "EthosUBackend is tosaic's functional simulator here, checked against TOSA and not against silicon; its time is "
     "not that of the device"},
};

// Nothing is thrown through ExecuTorch, which may be built without exceptions.
template <class F>
Error guarded(F f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) { return Error::MemoryAllocationFailed; } catch (...) {
    return Error::Internal;
  }
}

class TosaicBackend final : public BackendInterface {
 public:
  explicit TosaicBackend(const Row& row) : row_(row), api_(row.table()) {}
  const char* id() const { return api_->id; }

  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec> specs) const override {
    std::unique_ptr<Opened> opened;
    Error error = Error::Ok;
    error = guarded([&] {
      if (row_.note && !said_.exchange(true)) say(LogLevel::Info, row_.note);
      Options options = options_now();
      for (const BackendOption& option : context.runtime_specs())
        if (!options.set(id(), option)) return Error::InvalidArgument;
      Error why = Error::Internal;
      opened = Opened::open(api_, options, context, *processed, specs, why);
      return why;
    });
    if (error != Error::Ok) return error;
    return static_cast<DelegateHandle*>(opened.release());
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle, Span<EValue*> values) const override {
    return guarded([&] { return static_cast<Opened*>(handle)->execute(context, values); });
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Opened*>(handle); }

  Error set_option(BackendOptionContext&, const Span<BackendOption>& wanted) override {
    return guarded([&] {
      const std::lock_guard<std::mutex> lock(mutex_);
      Options options = options_;
      for (const BackendOption& option : wanted)
        if (!options.set(id(), option)) return Error::InvalidArgument;
      options_ = options;
      return Error::Ok;
    });
  }

  Error get_option(BackendOptionContext&, Span<BackendOption>& asked) override {
    return guarded([&] {
      const Options options = options_now();
      for (BackendOption& option : asked)
        if (!options.get(option)) return Error::NotFound;
      return Error::Ok;
    });
  }

 private:
  Options options_now() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return options_;
  }

  const Row& row_;
  const tosaic_delegate_api* api_;
  mutable std::atomic<bool> said_{false};
  mutable std::mutex mutex_;
  Options options_;
};

std::string file_of(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : "an unknown library";
}

// The version of the libexecutorch in this process, from the CMake package that lies next to it in a wheel and in an
// installed tree; "": nothing lies there. The library itself does not tell.
std::string executorch_version(const std::string& library) {
  const std::string folder = library.substr(0, library.rfind('/') + 1);
  for (const char* place : {"cmake/executorch/", "../share/cmake/", "cmake/ExecuTorch/"}) {
    std::ifstream file(folder + place + "executorch-config-version.cmake");
    for (std::string line; std::getline(file, line);)
      if (line.rfind("set(PACKAGE_VERSION \"", 0) == 0) return line.substr(21, line.find('"', 21) - 21);
  }
  return "";
}

// What the C functions tell; never destroyed, like the backends: the registry keeps pointers until the process ends.
struct Registration {
  std::vector<TosaicBackend*> backends;
  std::string names, problem;

  Registration() {
    const std::string library = file_of(reinterpret_cast<const void*>(&register_backend));
    const std::string here = executorch_version(library), built = TOSAIC_EXECUTORCH_MINOR;
    // The backend interface is a C++ class, whose layout changes from one minor version to the next.
    if (!here.empty() && here.rfind(built + ".", 0) != 0) {
      fail("this plug-in is built for ExecuTorch " + built + ", the process has " + here + " (" + library +
           "): no backend is registered; build the plug-in for that version, or install executorch==" + built + ".*");
      return;
    }
    for (const Row& row : rows) add(row);
  }

  void add(const Row& row) {
    const char* id = row.table()->id;
    if (const BackendInterface* other = get_backend_class(id)) {
      // A class's table of functions lies in the library that the class is of.
      return fail(std::string(id) + " is registered already, by " +
                  file_of(*reinterpret_cast<const void* const*>(other)) + ": that one is used, not tosaic's");
    }
    auto* backend = new TosaicBackend(row);
    if (const Error error = register_backend({id, backend}); error != Error::Ok) {
      delete backend;
      return fail(std::string(id) + " could not be registered: " + to_string(error));
    }
    backends.push_back(backend);
    names += (names.empty() ? "" : " ") + std::string(id);
  }

  void fail(const std::string& why) {
    say(LogLevel::Error, why);
    problem += (problem.empty() ? "" : "\n") + why;
  }
};

const Registration& registration() {
  static const auto* registered = new Registration;
  return *registered;
}

[[maybe_unused]] const Registration& when_loaded = registration();

}  // namespace
}  // namespace tosaic::plugin

using tosaic::plugin::registration;

// Its text is also looked for in the file, by those who want to know before they load it.
const char* tosaic_executorch_version(void) {
  static const char built_for[] = "tosaic plug-in for ExecuTorch " TOSAIC_EXECUTORCH_MINOR;
  return built_for + sizeof built_for - sizeof TOSAIC_EXECUTORCH_MINOR;
}
const char* tosaic_executorch_backends(void) { return registration().names.c_str(); }
const char* tosaic_executorch_problem(void) { return registration().problem.c_str(); }

const char* tosaic_executorch_error(void) {
  thread_local std::string taken;
  taken = tosaic::plugin::take_refusal();
  return taken.c_str();
}

int tosaic_executorch_set(const char* backend, const char* key, const char* value) {
  if (!key || !value) return 1;
  bool found = false;
  for (tosaic::plugin::TosaicBackend* each : registration().backends) {
    if (backend && std::strcmp(backend, each->id()) != 0) continue;
    found = true;
    executorch::runtime::BackendOption option = tosaic::plugin::option_of(key, value);
    executorch::runtime::BackendOptionContext context;
    if (each->set_option(context, {&option, 1}) != executorch::runtime::Error::Ok) return 1;
  }
  return found ? 0 : 1;
}

const char* tosaic_executorch_missing(const void* program, std::size_t bytes) {
  using namespace executorch::runtime;
  thread_local std::string missing;
  missing.clear();
  executorch::extension::BufferDataLoader loader(program, bytes);
  const Result<Program> loaded = Program::load(&loader);
  if (!loaded.ok()) return "";
  for (std::size_t m = 0; m < loaded->num_methods(); ++m) {
    const auto meta = loaded->method_meta(*loaded->get_method_name(m));
    for (std::size_t b = 0; meta.ok() && b < meta->num_backends(); ++b) {
      const char* name = *meta->get_backend_name(b);
      const std::string word = " " + std::string(name) + " ";
      if (!get_backend_class(name) && (" " + missing + " ").find(word) == std::string::npos)
        missing += (missing.empty() ? "" : " ") + std::string(name);
    }
  }
  missing = tosaic::printable(missing);
  return missing.c_str();
}
