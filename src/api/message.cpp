// SPDX-License-Identifier: Apache-2.0
#include "api/message.h"

namespace tosaic {

Message to_message(const Diagnostic& d) {
  Message m;
  m.level = d.severity == Severity::error     ? Message::Level::error
            : d.severity == Severity::warning ? Message::Level::warning
                                              : Message::Level::note;
  m.code = d.code;
  m.text = render(d, false);
  m.coloured = render(d, true);
  m.json = render_json(d);
  m.internal = d.internal;
  return m;
}

Sink to_messages(const MessageSink& sink) {
  if (!sink) return {};
  return [sink](Diagnostic d) { sink(to_message(d)); };
}

}  // namespace tosaic
