// SPDX-License-Identifier: Apache-2.0
// Two compute shaders, assembled by hand: no compiler that is at hand knows tensors. Each work item i of `count` does
// out[i] = in[i] * 3; binding 0 of set 0 is `in`, binding 1 `out`, of 32-bit integers.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

namespace tosaic::test {

class ShaderWords {
 public:
  // Storage buffers, or tensors of rank 1.
  explicit ShaderWords(bool tensors) {
    op(17, {1});  // OpCapability Shader
    if (tensors) {
      op(17, {4174});  // TensorsARM
      op(10, text("SPV_ARM_tensors"));
    }
    op(14, {0, 1});  // OpMemoryModel Logical GLSL450
    std::vector<std::uint32_t> entry{5, id("main")};
    for (std::uint32_t w : text("main")) entry.push_back(w);
    for (const char* v : {"gid", "in", "out"}) entry.push_back(id(v));
    op(15, entry);
    op(16, {id("main"), 17, 1, 1, 1});  // local size
    op(71, {id("gid"), 11, 28});        // GlobalInvocationId
    if (!tensors) {
      op(71, {id("array"), 6, 4});
      op(71, {id("block"), 2});
      op(72, {id("block"), 0, 35, 0});
    }
    for (std::uint32_t binding : {0u, 1u}) {
      op(71, {id(binding ? "out" : "in"), 34, 0});
      op(71, {id(binding ? "out" : "in"), 33, binding});
    }
    op(19, {id("void")});
    op(33, {id("function"), id("void")});
    op(21, {id("u32"), 32, 0});
    op(23, {id("v3"), id("u32"), 3});
    op(32, {id("to v3"), 1, id("v3")});
    op(32, {id("to input"), 1, id("u32")});
    op(43, {id("u32"), id("0"), 0});
    op(43, {id("u32"), id("1"), 1});
    op(43, {id("u32"), id("3"), 3});
    if (tensors) {
      op(4163, {id("tensor"), id("u32"), id("1")});
      op(28, {id("place"), id("u32"), id("1")});
      op(32, {id("to resource"), 0, id("tensor")});
    } else {
      op(29, {id("array"), id("u32")});
      op(30, {id("block"), id("array")});
      op(32, {id("to resource"), 12, id("block")});
      op(32, {id("to element"), 12, id("u32")});
    }
    op(59, {id("to v3"), id("gid"), 1});
    op(59, {id("to resource"), id("in"), tensors ? 0u : 12u});
    op(59, {id("to resource"), id("out"), tensors ? 0u : 12u});
    op(54, {id("void"), id("main"), 0, id("function")});
    op(248, {id("begin")});
    op(65, {id("to input"), id("x at"), id("gid"), id("0")});
    op(61, {id("u32"), id("x"), id("x at")});
    if (tensors) {
      op(80, {id("place"), id("where"), id("x")});
      op(61, {id("tensor"), id("source"), id("in")});
      op(61, {id("tensor"), id("sink"), id("out")});
      op(4164, {id("u32"), id("value"), id("source"), id("where")});
    } else {
      op(65, {id("to element"), id("from"), id("in"), id("0"), id("x")});
      op(61, {id("u32"), id("value"), id("from")});
    }
    op(132, {id("u32"), id("product"), id("value"), id("3")});
    if (tensors) {
      op(4165, {id("sink"), id("where"), id("product")});
    } else {
      op(65, {id("to element"), id("to"), id("out"), id("0"), id("x")});
      op(62, {id("to"), id("product")});
    }
    op(253, {});
    op(56, {});
    words_[3] = static_cast<std::uint32_t>(names_.size()) + 1;
  }
  const std::vector<std::uint32_t>& words() const { return words_; }

 private:
  std::uint32_t id(const std::string& name) {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return static_cast<std::uint32_t>(i) + 1;
    names_.push_back(name);
    return static_cast<std::uint32_t>(names_.size());
  }
  static std::vector<std::uint32_t> text(const std::string& s) {
    std::vector<std::uint32_t> words(s.size() / 4 + 1);
    std::memcpy(words.data(), s.data(), s.size());
    return words;
  }
  void op(std::uint32_t opcode, const std::vector<std::uint32_t>& operands) {
    words_.push_back(static_cast<std::uint32_t>(operands.size() + 1) << 16 | opcode);
    words_.insert(words_.end(), operands.begin(), operands.end());
  }
  std::vector<std::string> names_;
  std::vector<std::uint32_t> words_{0x07230203, 0x00010500, 0, 0, 0};
};

}  // namespace tosaic::test
