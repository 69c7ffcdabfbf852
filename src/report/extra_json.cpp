// SPDX-License-Identifier: Apache-2.0
#include "report/extra_json.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <algorithm>

#include "base/diagnostic.h"

namespace tosaic::reporting {
namespace {

// What is wrong with it; empty: nothing.
std::string problem(const simdjson::dom::element& root, const std::vector<std::string_view>& commands,
                    std::string_view member) {
  simdjson::dom::object object;
  if (root.get(object)) return "it is no JSON object";
  std::string_view command;
  if (object.at_key("command").get(command)) return "it does not say which command wrote it";
  if (std::ranges::find(commands, command) == commands.end())
    return fmt::format("it was written by `tosaic {}`", command.substr(0, 40));
  simdjson::dom::element there;
  if (object.at_key(member).get(there)) return fmt::format("it has no \"{}\"", member);
  return "";
}

}  // namespace

Result<std::string> checked_json(std::string_view json, const std::vector<std::string_view>& commands,
                                 std::string_view member, const std::string& file, const std::string& how) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const simdjson::padded_string padded(json);
  const std::string wrong = parser.parse(padded).get(root) ? "it is no JSON" : problem(root, commands, member);
  if (!wrong.empty())
    return error("report.json", fmt::format("this is not what `tosaic {}` prints: {}", how, wrong))
        .at({file, 0, ""})
        .hint(fmt::format("tosaic {} ... >FILE", how));
  return simdjson::minify(root);
}

Status check_manifest_of(std::string_view manifest, const std::string& named, const Bytes& program,
                         const std::string& path) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(manifest);
  simdjson::dom::element root;
  std::uint64_t bytes = 0;
  std::string_view hash;
  if (parser.parse(padded).get(root) || root.at_pointer("/program/bytes").get(bytes) || bytes == 0 ||
      root.at_pointer("/program/xxh3").get(hash))
    return {};
  const std::string here = fmt::format("{:016x}", hash_of(program));
  if (hash == here) return {};
  return error("report.other-manifest",
               fmt::format("this is the manifest of another program than {}: of one of {} bytes "
                           "with the hash {}, which here has {} and {}",
                           path, bytes, hash, program.size(), here))
      .at({named, 0, ""})
      .hint(fmt::format("give what `tosaic compile -o {} --report FILE` wrote", path));
}

}  // namespace tosaic::reporting
