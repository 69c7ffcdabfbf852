// SPDX-License-Identifier: Apache-2.0
#include "formats/vgf/shader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include "formats/vgf/vulkan_names.h"
#include "ir/base64.h"

namespace tosaic::vgf {
namespace {

using simdjson::dom::object;

constexpr const char* language_names[] = {"", "SPIR-V", "GLSL", "HLSL"};
constexpr const char* sampler_members[] = {"min_filter", "mag_filter", "address_mode_u", "address_mode_v",
                                           "border_color"};
constexpr VulkanEnum sampler_enums[] = {VulkanEnum::filter, VulkanEnum::filter, VulkanEnum::address_mode,
                                        VulkanEnum::address_mode, VulkanEnum::border_color};

template <class... T>
Diagnostic bad(fmt::format_string<T...> text, T&&... values) {
  return error("vgf.shader", "a custom shader's attributes: " + fmt::format(text, std::forward<T>(values)...));
}

Result<std::uint32_t> number(const object& from, const std::string& key, std::optional<std::uint32_t> otherwise) {
  const auto found = from[key];
  if (found.error() == simdjson::NO_SUCH_FIELD && otherwise) return *otherwise;
  std::uint64_t value = 0;
  if (found.get(value) != simdjson::SUCCESS || value > 0xffffffffu) return bad("'{}' must be a number", key);
  return static_cast<std::uint32_t>(value);
}

// A name of Vulkan's, as its number.
Result<std::uint32_t> named(const object& from, const std::string& key, VulkanEnum kind,
                            std::optional<std::uint32_t> otherwise) {
  const auto found = from[key];
  if (found.error() == simdjson::NO_SUCH_FIELD && otherwise) return *otherwise;
  std::string_view name;
  if (found.get(name) != simdjson::SUCCESS) return bad("'{}' must be a name", key);
  const auto value = vulkan_number(kind, name);
  if (!value) return bad("'{}' is '{}', which is no name that tosaic knows", key, name);
  return *value;
}

Result<ShaderOperand> operand(const object& from, const std::string& which) {
  ShaderOperand made;
  TOSAIC_TRY(made.binding, number(from, which + "_binding", std::nullopt));
  TOSAIC_TRY(made.set, number(from, which + "_descriptorset", 0));
  TOSAIC_TRY(made.format, named(from, which + "_vkformat", VulkanEnum::format, 0));
  TOSAIC_TRY(made.descriptor_type,
             named(from, which + "_vkdescriptortype", VulkanEnum::descriptor_type, tensor_descriptor));
  object sampler;
  if (from[which + "_sampler"].get(sampler) == simdjson::SUCCESS) {
    Sampler s{};
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      TOSAIC_TRY(s.values[i], named(sampler, sampler_members[i], sampler_enums[i], std::nullopt));
    }
    made.sampler.push_back(s);
  }
  return made;
}

Status code(const object& from, Shader& shader) {
  std::string_view language, text;
  const bool has_language = from["shader_language"].get(language) == simdjson::SUCCESS;
  const bool has_code = from["shader_code"].get(text) == simdjson::SUCCESS;
  if (has_language != has_code) return bad("'shader_language' and 'shader_code' go together");
  if (!has_code) return {};
  for (std::uint8_t i = 1; i < std::size(language_names); ++i)
    if (language == language_names[i]) shader.language = static_cast<Language>(i);
  if (shader.language == Language::absent) return bad("'shader_language' is '{}'", language);
  if (shader.language != Language::spirv) {
    shader.code = Bytes::copy(text.data(), text.size());
    return {};
  }
  auto words = base64_decode(text);
  if (!words || words->empty() || words->size() % 4) return bad("'shader_code' is no SPIR-V in base64");
  shader.code = Bytes::of(std::move(*words));
  return {};
}

std::string operand_json(const ShaderOperand& o, const std::string& which) {
  std::string text = fmt::format(", \"{0}_binding\": {1}, \"{0}_descriptorset\": {2}", which, o.binding, o.set);
  auto add = [&](const char* member, VulkanEnum kind, std::uint32_t value) {
    const std::string name = vulkan_name(kind, value);
    if (!name.empty()) text += fmt::format(", \"{}_{}\": \"{}\"", which, member, name);
  };
  const bool image = o.descriptor_type >= 1 && o.descriptor_type <= 3;  // of the descriptor types, those of images
  text += fmt::format(", \"{}_type\": \"{}\"", which, image ? "Image" : "Tensor");
  if (o.format) add("vkformat", VulkanEnum::format, o.format);
  add("vkdescriptortype", VulkanEnum::descriptor_type, o.descriptor_type);
  if (!o.sampler.empty()) {
    text += fmt::format(", \"{}_sampler\": {{", which);
    for (std::size_t i = 0; i < std::size(sampler_members); ++i)
      text += fmt::format("{}\"{}\": \"{}\"", i ? ", " : "", sampler_members[i],
                          vulkan_name(sampler_enums[i], o.sampler[0].values[i]));
    text += "}";
  }
  return text;
}

}  // namespace

Result<Shader> parse_shader(std::string_view json, std::size_t inputs, std::size_t outputs) {
  simdjson::dom::parser parser;
  object root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS) return bad("no JSON object");
  Shader shader;
  std::string_view entry;
  if (root["entry_point"].get(entry) != simdjson::SUCCESS) return bad("'entry_point' must be a name");
  shader.entry_point = entry;
  simdjson::dom::array sizes;
  if (root["workgroup_sizes"].get(sizes) != simdjson::SUCCESS || sizes.size() != 3)
    return bad("'workgroup_sizes' must be three numbers");
  for (simdjson::dom::element size : sizes) {
    std::uint64_t value = 0;
    if (size.get(value) != simdjson::SUCCESS || value > 0xffffffffu)
      return bad("'workgroup_sizes' must be three numbers");
    shader.dispatch.push_back(static_cast<std::uint32_t>(value));
  }
  TOSAIC_CHECK(code(root, shader));
  for (std::size_t i = 0; i < inputs; ++i) {
    TOSAIC_TRY(ShaderOperand made, operand(root, fmt::format("input_{}", i)));
    shader.inputs.push_back(std::move(made));
  }
  for (std::size_t i = 0; i < outputs; ++i) {
    TOSAIC_TRY(ShaderOperand made, operand(root, fmt::format("output_{}", i)));
    shader.outputs.push_back(std::move(made));
  }
  return shader;
}

std::string shader_json(const Shader& shader) {
  std::string text = fmt::format("{{\"entry_point\": {}, \"workgroup_sizes\": [{}]", json_quote(shader.entry_point),
                                 fmt::join(shader.dispatch, ", "));
  if (shader.language != Language::absent)
    text += fmt::format(
        ", \"shader_language\": \"{}\", \"shader_code\": {}", language_names[static_cast<std::size_t>(shader.language)],
        shader.language == Language::spirv ? json_quote(base64_encode(shader.code.data(), shader.code.size()))
                                           : json_quote(shader.code.text()));
  for (std::size_t i = 0; i < shader.inputs.size(); ++i)
    text += operand_json(shader.inputs[i], fmt::format("input_{}", i));
  for (std::size_t i = 0; i < shader.outputs.size(); ++i)
    text += operand_json(shader.outputs[i], fmt::format("output_{}", i));
  return text + "}";
}

}  // namespace tosaic::vgf
