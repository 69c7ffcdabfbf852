// SPDX-License-Identifier: Apache-2.0
// What some invocations of a module give, computed here, and how much of it a device got wrong.
#pragma once
#include <atomic>
#include <map>
#include <set>
#include <span>
#include <string>

#include "vulkan/self_test_case.h"

namespace tosaic::vulkan {

class SelfTestComparison {
 public:
  SelfTestComparison(const SelfTestCase& of, const Bytes& constants);
  SelfTestComparison(const SelfTestCase&, Bytes&&) = delete;  // it looks into the constants

  // The same invocations with floats rounded in several ways: any thread computes any of these, next to the others.
  std::size_t runs() const { return computed_.size(); }
  // `left_of_all`: steps for what all modules of the program do here.
  void compute(std::size_t run, std::atomic<std::int64_t>& left_of_all);

  // When all runs are computed:
  void join();
  // Nothing was compared, because it takes too long.
  bool is_too_long() const;
  // What is wrong; empty: nothing.
  std::string judge(std::span<const std::byte> device);
  // Do several invocations store different numbers in what is wrong? Then each of them is right, and the shader is not.
  // false, too: it takes too long to say.
  bool is_contested() const;

 private:
  using Word = spirv::Word;
  struct Element {
    Word binding = 0, bytes = 4;
    std::uint64_t index = 0;
    std::vector<Word> bits;  // of each run, the one without noise first
  };
  // By invocation, what it stores; none: that is not defined.
  struct Computed {
    std::vector<std::optional<std::vector<spirv::ShaderWrite>>> stores;
    bool too_long = false;
  };

  spirv::ShaderProgram::Run at(std::uint64_t group, Word local) const;
  void join(std::size_t invocation);
  bool is_real(const Element& e) const { return case_.program.bindings()[e.binding].real; }
  static double spread(const Element& e);
  bool near(const Element& e, Word found, double usual) const;
  bool same(const Element& e, Word found) const;

  const SelfTestCase& case_;
  const Bytes& constants_;
  std::vector<Computed> computed_;
  std::vector<Element> elements_;
  std::set<std::pair<Word, std::uint64_t>> wrong_;  // binding and index
};

}  // namespace tosaic::vulkan
