# SPDX-License-Identifier: Apache-2.0
# The page of `tosaic report` (src/report/page): one HTML file with its styles and scripts, and two libraries in JavaScript
# that Debian has. It becomes part of the tool, compressed.

# report_script(variable FILES names... PLACES folders... PACKAGES names...): the first of these files. With TOSAIC_VENDOR
# they lie there.
function(report_script variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;PLACES;PACKAGES")
  if(TOSAIC_VENDOR)
    set(arg_PLACES ${TOSAIC_VENDOR}/scripts)
  endif()
  find_file(${variable} NAMES ${arg_FILES} PATHS ${arg_PLACES} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  if(NOT ${variable})
    list(JOIN arg_FILES " or " files)
    list(JOIN arg_PLACES ", " places)
    list(JOIN arg_PACKAGES " or " packages)
    message(FATAL_ERROR "${files} is not in ${places}: `tosaic report` puts it into its pages. Debian and Ubuntu have it in "
                        "the package ${packages}; elsewhere give its path: -D${variable}=FILE")
  endif()
endfunction()

# Adds a source to the target that defines reporting::compressed_page() and reporting::page_bytes().
function(report_page target)
  report_script(TOSAIC_CHART_JS FILES chart.min.js PLACES /usr/share/javascript/chart.js PACKAGES libjs-chart.js)
  report_script(TOSAIC_DAGRE_JS FILES dagre.min.js
                PLACES /usr/share/nodejs/dagre/dist /usr/lib/python3/dist-packages/xstatic/pkg/dagre/data
                PACKAGES python3-xstatic-dagre node-dagre-layout)
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/report/page)
  # Read as they are: what each defines, the later ones use.
  set(scripts format table charts facts views times memory quantisation graph_level graph report)
  list(TRANSFORM scripts PREPEND ${folder}/)
  list(TRANSFORM scripts APPEND .js)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts} ${folder}/report.html ${folder}/report.css
               ${TOSAIC_CHART_JS} ${TOSAIC_DAGRE_JS})
  file(READ ${folder}/report.html page)
  set(own "")
  foreach(script ${scripts})
    file(READ ${script} text)
    string(APPEND own "${text}")
  endforeach()
  file(READ ${folder}/report.css styles)
  file(READ ${TOSAIC_CHART_JS} chart)
  file(READ ${TOSAIC_DAGRE_JS} dagre)
  string(REPLACE "@REPORT_STYLES@" "${styles}" page "${page}")
  string(REPLACE "@REPORT_CHART@" "${chart}" page "${page}")
  string(REPLACE "@REPORT_DAGRE@" "${dagre}" page "${page}")
  string(REPLACE "@REPORT_SCRIPTS@" "${own}" page "${page}")
  set(out ${CMAKE_BINARY_DIR}/generated/report_page)
  file(WRITE ${out}.html "${page}")
  file(SIZE ${out}.html bytes)
  file(ARCHIVE_CREATE OUTPUT ${out}.gz PATHS ${out}.html FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${out}.gz hex HEX)
  # A gzip file says when it was made; the same page makes the same tool.
  string(SUBSTRING "${hex}" 0 8 begin)
  string(SUBSTRING "${hex}" 16 -1 rest)
  string(REGEX REPLACE "(..)" "0x\\1," numbers "${begin}00000000${rest}")
  set(content "// Generated from src/report/page. Do not edit.\n#include <cstddef>\n#include <span>\nnamespace tosaic::reporting {\nstd::span<const unsigned char> compressed_page() {\n  static constexpr unsigned char page[] = {${numbers}};\n  return page;\n}\nstd::size_t page_bytes() { return ${bytes}; }\n}  // namespace tosaic::reporting\n")
  if(EXISTS ${out}.cpp)
    file(READ ${out}.cpp old)
  endif()
  if(NOT "${old}" STREQUAL "${content}")
    file(WRITE ${out}.cpp "${content}")
  endif()
  target_sources(${target} PRIVATE ${out}.cpp)
endfunction()
