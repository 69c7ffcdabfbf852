// SPDX-License-Identifier: Apache-2.0
// What stands in a shader before its types: what it needs of a device, its entry point, the decorations of its ids.
#pragma once
#include <optional>
#include <utility>

#include "formats/spirv/compute/check_ids.h"
#include "formats/spirv/compute/check_shader.h"

namespace tosaic::spirv {

class CheckedPreamble : protected CheckedIds {
 protected:
  using CheckedIds::CheckedIds;

  void header();
  void preamble();
  void decorations();
  std::optional<Word> decoration(Id id, Word which) const;

  Id glsl_ = 0, function_ = 0;
  bool may_store_8_ = false, may_store_16_ = false, may_view_ = false;
  std::vector<Id> interface_ids_;
  std::set<Id> laid_;   // structures whose member lies at 0
  std::set<Id> exact_;  // what is decorated so, and has not come yet
  ShaderInterface result_;

 private:
  std::map<std::pair<Id, Word>, Word> decorated_;
};

}  // namespace tosaic::spirv
