// SPDX-License-Identifier: Apache-2.0
// Bundled programs at the boundary of the library, and how their cases are tried.
#include "tosaic/bundle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>
#include <map>

#include "api/case_difference.h"
#include "api/guard.h"
#include "api/program.h"
#include "formats/bpte/bpte_file.h"

namespace tosaic {
namespace {

Output output_of(const bpte::Value& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) return {owned(*tensor), {}};
  if (const auto* i = std::get_if<std::int64_t>(&value)) return {std::nullopt, *i};
  if (const auto* b = std::get_if<bool>(&value)) return {std::nullopt, *b};
  return {std::nullopt, std::get<double>(value)};
}

Result<bpte::Value> value_of(const Output& output) {
  if (output.tensor) TOSAIC_CHECK(check_owned(*output.tensor, "a tensor of a case"));
  if (output.tensor)
    return bpte::Value(Tensor{{output.tensor->dtype, Shape(output.tensor->sizes), {}}, output.tensor->data});
  if (const auto* i = std::get_if<std::int64_t>(&output.literal)) return bpte::Value(*i);
  if (const auto* b = std::get_if<bool>(&output.literal)) return bpte::Value(*b);
  if (const auto* d = std::get_if<double>(&output.literal)) return bpte::Value(*d);
  return error("bpte.value", "a bundled program has tensors and scalars, not None, strings or lists")
      .hint("bundle cases of a method that takes and gives tensors");
}

// "[0, 3]" of the third element of the first row.
std::string place_of(std::size_t element, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> index(sizes.size());
  auto rest = static_cast<std::int64_t>(element);
  for (std::size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) index[d] = rest % sizes[d];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// Empty: it is what was expected.
std::string difference(const OwnedTensor& found, const OwnedTensor& expected, const Tolerance& tolerance) {
  const auto type = [](const OwnedTensor& t) { return to_string(TensorType{t.dtype, Shape(t.sizes), {}}); };
  if (found.dtype != expected.dtype || found.sizes != expected.sizes)
    return fmt::format("is {}, expected is {}", type(found), type(expected));
  const std::size_t count = found.data.size() / storage_size(found.dtype);
  std::size_t differ = 0, worst = 0;
  double most = -1;
  for (std::size_t i = 0; i < count; ++i) {
    double distance = 0, allowed = 0;
    if (is_float(found.dtype)) {
      const double a = element_as_double(found.dtype, found.data.data(), i);
      const double b = element_as_double(expected.dtype, expected.data.data(), i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      distance = std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) : HUGE_VAL;
      allowed = std::isfinite(b) ? tolerance.absolute + tolerance.relative * std::abs(b) : 0;
    } else {
      const auto a = element_as_integer(found.dtype, found.data.data(), i);
      const auto b = element_as_integer(expected.dtype, expected.data.data(), i);
      distance = std::abs(static_cast<double>(a) - static_cast<double>(b));
      if (a == b) continue;
    }
    if (distance <= allowed) continue;
    ++differ;
    if (distance > most) most = distance, worst = i;
  }
  if (differ == 0) return "";
  const auto text = [&](const OwnedTensor& t) {
    return is_float(t.dtype) ? to_string(element_as_double(t.dtype, t.data.data(), worst))
                             : std::to_string(element_as_integer(t.dtype, t.data.data(), worst));
  };
  return fmt::format("{} of {} elements differ, the most {}: {} for {}", differ, count, place_of(worst, found.sizes),
                     text(found), text(expected));
}

}  // namespace

std::string difference(const std::vector<Output>& found, const std::vector<Output>& expected,
                       const Tolerance& tolerance) {
  if (expected.empty()) return "";
  if (found.size() != expected.size())
    return fmt::format("gives {} outputs, expected are {}", found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::string why;
    if (found[i].tensor && expected[i].tensor)
      why = difference(*found[i].tensor, *expected[i].tensor, tolerance);
    else if (found[i].tensor || expected[i].tensor)
      why = found[i].tensor ? "is a tensor, a scalar is expected" : "is a scalar, a tensor is expected";
    else if (found[i].literal != expected[i].literal)
      why = "is another scalar";
    if (!why.empty()) return fmt::format("output {}: {}", i, why);
  }
  return "";
}

namespace {

std::string run_case(Session& session, const BundledCase& one, const Tolerance& tolerance) {
  std::vector<InputTensor> inputs;  // numbers are fixed in the program
  for (const Output& value : one.inputs)
    if (value.tensor) inputs.push_back(value.tensor->view());
  const auto outputs = session.run(inputs);
  return outputs.ok() ? difference(*outputs, one.outputs, tolerance) : outputs.error().message;
}

Result<std::vector<CaseOutcome>> try_cases(const Bundle& bundle, const std::string& name, SessionOptions options,
                                           const Tolerance& tolerance, const Messages& messages) {
  std::vector<CaseOutcome> outcomes;
  std::map<std::string, std::pair<Session, std::size_t>> sessions;
  for (const BundledCase& one : bundle.cases) {
    for (const auto* values : {&one.inputs, &one.outputs})
      for (const Output& value : *values)
        if (value.tensor)
          TOSAIC_CHECK(check_owned(*value.tensor, fmt::format("a tensor of a case of '{}'", one.method)));
    auto found = sessions.find(one.method);
    if (found == sessions.end()) {
      options.method = one.method;
      TOSAIC_TRY(Session session,
                 Session::load(bundle.program, name, options, sessions.empty() ? messages : Messages()));
      found = sessions.emplace(one.method, std::pair(std::move(session), std::size_t{0})).first;
    }
    auto& [session, number] = found->second;
    std::string why = run_case(session, one, tolerance);
    const bool passed = why.empty();
    outcomes.push_back({one.method, number++, passed, std::move(why)});
  }
  return outcomes;
}

}  // namespace

bool is_bundle(const Bytes& file) { return bpte::is_bpte(file); }

Result<Bundle> read_bundle(const Bytes& file, const std::string& name) {
  return guarded(name, [&]() -> Result<Bundle> {
    TOSAIC_TRY(bpte::File read, bpte::read(file, name));
    Bundle bundle{std::move(read.program), {}};
    for (const bpte::Case& one : read.cases) {
      BundledCase& made = bundle.cases.emplace_back();
      made.method = one.method;
      for (const bpte::Value& value : one.inputs) made.inputs.push_back(output_of(value));
      for (const bpte::Value& value : one.outputs) made.outputs.push_back(output_of(value));
    }
    return bundle;
  });
}

Result<Bytes> write_bundle(const Bundle& bundle) {
  return guarded("program", [&]() -> Result<Bytes> {
    bpte::File file{bundle.program, {}};
    for (const BundledCase& one : bundle.cases) {
      bpte::Case& made = file.cases.emplace_back();
      made.method = one.method;
      for (const auto& [from, to] : {std::pair(&one.inputs, &made.inputs), std::pair(&one.outputs, &made.outputs)})
        for (const Output& output : *from) {
          TOSAIC_TRY(bpte::Value value, value_of(output));
          to->push_back(std::move(value));
        }
    }
    return bpte::write(file);
  });
}

Result<std::vector<CaseOutcome>> check_cases(const Bundle& bundle, const std::string& name,
                                             const SessionOptions& options, Tolerance tolerance,
                                             const Messages& messages) {
  return guarded(name, [&] { return try_cases(bundle, name, options, tolerance, messages); });
}

}  // namespace tosaic
