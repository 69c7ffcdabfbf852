// SPDX-License-Identifier: Apache-2.0
// The payloads that tosaic knows: whose they are, how they are told, shown and written as files. A row each.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "formats/pte/pte_file.h"
#include "tosaic/files.hpp"

namespace tosaic {

struct ShownPayload;

// A delegate of a program.
struct ProgramDelegate {
  const pte::Plan& plan;
  std::size_t index = 0;
  const std::map<std::string, Bytes>& data;  // what the program keeps outside of it
  std::string place;                         // for messages: "m.pte (delegate 0)"
  const pte::Delegate& delegate() const { return plan.delegates[index]; }
};

struct PayloadForm {
  std::string_view delegate;  // its id
  bool (*is)(const Bytes& payload) = nullptr;
  // Lines that stand under the delegate's, and the member `member` of its JSON.
  std::string_view member;
  Result<Inspection> (*inspect)(const ProgramDelegate& of, const Bytes& payload,
                                const InspectOptions& options) = nullptr;
  // What it runs, for a report (report_payload.h).
  Result<ShownPayload> (*show)(const ProgramDelegate& of, const Bytes& payload, const std::string& name) = nullptr;
  // A file of its own, with all that it needs of the program. nullptr: the payload as it is.
  std::string_view ending;
  Result<Rope> (*extract)(const ProgramDelegate& of, const Bytes& payload) = nullptr;
};

// The bytes say what they are: other tools' delegates may carry the same forms under names of their own.
const PayloadForm* form_of(const Bytes& payload);
// Or else the delegate's id does: what is damaged is its delegate's still. nullptr: unknown.
const PayloadForm* form_of(const ProgramDelegate& payload);

}  // namespace tosaic
