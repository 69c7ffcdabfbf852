// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <zlib.h>
#include <span>

#include "base/diagnostic.h"
#include "base/html_text.h"

namespace tosaic::reporting {

std::span<const unsigned char> compressed_page();  // generated: gzip; and how long it is, unpacked
std::size_t page_bytes();

namespace {

Result<std::string> unpacked_page() {
  const std::span<const unsigned char> packed = compressed_page();
  std::string page(page_bytes(), '\0');
  z_stream stream{};
  constexpr int with_gzip_header = 16;
  if (inflateInit2(&stream, MAX_WBITS + with_gzip_header) != Z_OK) return internal_error("zlib does not start");
  stream.next_in = const_cast<Bytef*>(packed.data());  // zlib's interface is older than const
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(page.data());
  stream.avail_out = static_cast<uInt>(page.size());
  const int state = inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  if (state != Z_STREAM_END || stream.avail_out != 0) return internal_error("the page of the report is damaged");
  return page;
}

// Within a script element no text may look like its end, or like a comment: of a JSON text every < lies in a string.
std::string inside_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

Result<std::string> page_of(std::string_view json, std::string_view title) {
  TOSAIC_TRY(const std::string page, unpacked_page());
  constexpr std::string_view title_mark = "@REPORT_TITLE@", data_mark = "@REPORT_DATA@";
  const std::size_t at_title = page.find(title_mark), at_data = page.find(data_mark);
  if (at_title == page.npos || at_data == page.npos || at_data < at_title)
    return internal_error("the page of the report has no place for its data");
  const std::size_t after_title = at_title + title_mark.size();
  return page.substr(0, at_title) + html_text(title) + page.substr(after_title, at_data - after_title) +
         inside_script(json) + page.substr(at_data + data_mark.size());
}

}  // namespace tosaic::reporting
