# SPDX-License-Identifier: Apache-2.0
# The report's page, one HTML file made from web/. Sets JOULEMARK_PAGE (the file, "" without one) and
# JOULEMARK_PAGE_SOURCE (the C++ file that holds it). npm works on a copy in the build tree.
option(JOULEMARK_WEB "Build the HTML report (needs npm, or JOULEMARK_WEB_BUNDLE)" ON)
set(JOULEMARK_WEB_BUNDLE "" CACHE PATH "Folder with report.html built elsewhere: for a machine without npm")

set(JOULEMARK_PAGE "")
set(JOULEMARK_PAGE_SOURCE page.cpp)
set(JOULEMARK_WEB_BUILD "" CACHE INTERNAL "Where npm works; empty when the page was not built here")
find_program(JOULEMARK_NPM npm)
if(NOT JOULEMARK_WEB)
  set(JOULEMARK_PAGE_SOURCE page_absent.cpp)
elseif(JOULEMARK_WEB_BUNDLE)
  set(JOULEMARK_PAGE ${JOULEMARK_WEB_BUNDLE}/report.html)
  if(NOT EXISTS ${JOULEMARK_PAGE})
    message(FATAL_ERROR "JOULEMARK_WEB_BUNDLE has no report.html: give the folder web/dist of a build that had npm.")
  endif()
elseif(NOT JOULEMARK_NPM)
  message(FATAL_ERROR "npm was not found: install Node.js 18 or newer with npm, give a page built elsewhere with "
                      "-DJOULEMARK_WEB_BUNDLE=DIR, or leave the HTML report out with -DJOULEMARK_WEB=OFF.")
else()
  set(web ${PROJECT_SOURCE_DIR}/web)
  set(JOULEMARK_WEB_BUILD ${PROJECT_BINARY_DIR}/web CACHE INTERNAL "")
  set(JOULEMARK_PAGE ${JOULEMARK_WEB_BUILD}/dist/report.html)
  set(modules_stamp ${JOULEMARK_WEB_BUILD}/node_modules/.package-lock.json)
  include(${web}/sources.cmake)
  list(TRANSFORM JOULEMARK_WEB_SOURCES PREPEND ${web}/)
  add_custom_command(OUTPUT ${modules_stamp}
    COMMAND ${CMAKE_COMMAND} -E copy ${web}/package.json ${web}/package-lock.json ${web}/.npmrc ${JOULEMARK_WEB_BUILD}
    COMMAND ${JOULEMARK_NPM} ci --prefer-offline --loglevel=error
    COMMAND ${CMAKE_COMMAND} -E touch ${modules_stamp}
    DEPENDS ${web}/package.json ${web}/package-lock.json ${web}/.npmrc
    WORKING_DIRECTORY ${JOULEMARK_WEB_BUILD} COMMENT "Fetching the report's JavaScript libraries" VERBATIM)
  add_custom_command(OUTPUT ${JOULEMARK_PAGE}
    COMMAND ${CMAKE_COMMAND} -E rm -rf src
    COMMAND ${CMAKE_COMMAND} -E copy_directory ${web}/src src
    COMMAND ${CMAKE_COMMAND} -E copy ${web}/build.mjs ${web}/tsconfig.json .
    COMMAND ${JOULEMARK_NPM} run --silent check
    COMMAND ${JOULEMARK_NPM} run --silent build
    DEPENDS ${modules_stamp} ${JOULEMARK_WEB_SOURCES} ${web}/sources.cmake
    WORKING_DIRECTORY ${JOULEMARK_WEB_BUILD} COMMENT "Building the report's page" VERBATIM)
  file(MAKE_DIRECTORY ${JOULEMARK_WEB_BUILD})
endif()
