# SPDX-License-Identifier: Apache-2.0
# Three helpers, so that a folder's CMakeLists.txt says only what is special about it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_UNITY_BUILD ${JOULEMARK_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_package(Threads REQUIRED)
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  # The base directory lets one clone use what another compiled; the sloppiness is what precompiled headers need.
  set(ccache ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${ccache})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${ccache})
endif()

add_library(joulemark_warnings INTERFACE)
# -Wrestrict misfires on std::string in GCC 12 (its bug 105651); -Wsubobject-linkage takes a file that is compiled
# together with others for a header.
target_compile_options(joulemark_warnings INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-restrict
                                                    $<$<AND:$<BOOL:${JOULEMARK_UNITY}>,$<COMPILE_LANGUAGE:CXX>>:-Wno-subobject-linkage>
                                                    $<$<BOOL:${JOULEMARK_WERROR}>:-Werror>)

# Parsing JSON, CLI11 and GoogleTest takes longer than compiling most of our files: each is parsed once, for the
# libraries, for the commands, and for the tests. (-fpch-preprocess is what lets ccache see through it.)
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
function(joulemark_shared_headers name)
  cmake_parse_arguments(arg "FOR_PROGRAMS" "" "HEADERS;LINKS;OPTIONS" ${ARGN})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers/${name}.cpp CONTENT "")
  add_library(joulemark_headers_${name} OBJECT ${CMAKE_BINARY_DIR}/headers/${name}.cpp)
  target_link_libraries(joulemark_headers_${name} PRIVATE fmt::fmt nlohmann_json::nlohmann_json Threads::Threads
                                                          ${arg_LINKS} joulemark_warnings)
  target_compile_options(joulemark_headers_${name} PRIVATE ${arg_OPTIONS})
  if(arg_FOR_PROGRAMS)
    # Programs are compiled with -fPIE, and the compiler refuses headers made with -fPIC.
    set_target_properties(joulemark_headers_${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(joulemark_headers_${name} PRIVATE -fPIE)
  endif()
  target_precompile_headers(joulemark_headers_${name} PRIVATE
    <algorithm> <filesystem> <map> <memory> <optional> <string> <vector> <fmt/format.h> <nlohmann/json.hpp>
    ${arg_HEADERS})
endfunction()

function(joulemark_use_headers target name)
  target_precompile_headers(${target} REUSE_FROM joulemark_headers_${name})
endfunction()

find_package(CLI11 REQUIRED)
joulemark_shared_headers(library)
# Nothing in a command's own code is hot, and option parsing is slow to optimise.
set(JOULEMARK_COMMAND_OPTIONS -O1)
joulemark_shared_headers(command FOR_PROGRAMS HEADERS <CLI/CLI.hpp> LINKS CLI11::CLI11 OPTIONS ${JOULEMARK_COMMAND_OPTIONS})

# For a program that is mostly options and tables: shared headers, and no time spent on optimising it.
function(joulemark_command_program target)
  target_compile_options(${target} PRIVATE ${JOULEMARK_COMMAND_OPTIONS})
  target_link_libraries(${target} PRIVATE CLI11::CLI11 joulemark_warnings)
  joulemark_use_headers(${target} command)
endfunction()

# joulemark_library(NAME SOURCES a.cpp ... [LINKS target ...])
# Makes joulemark_NAME with alias joulemark::NAME. Includes are written from src/: "core/clock.h".
function(joulemark_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(joulemark_${name} STATIC ${arg_SOURCES})
  add_library(joulemark::${name} ALIAS joulemark_${name})
  target_include_directories(joulemark_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(joulemark_${name} PUBLIC ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS} joulemark_warnings)
  joulemark_use_headers(joulemark_${name} library)
endfunction()

# torch.h costs what includes it ten seconds of template instantiation: one precompiled header serves all, and our side
# of libtorch is not hot. (What is, in train/data, is in joulemark_train_base.)
set(JOULEMARK_TORCH_OPTIONS -O1)
# A program on joulemark_train_core: compiled like that library (programs would get -fPIE, tests -O0), whose header it uses.
function(joulemark_use_torch_headers target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC ${JOULEMARK_TORCH_OPTIONS})
  target_precompile_headers(${target} REUSE_FROM joulemark_train_core)
endfunction()

if(JOULEMARK_TESTS)
  # Sanitizers take time, and memory of their own: tests know of them.
  set(JOULEMARK_SANITIZED OFF)
  set(JOULEMARK_TIMEOUT_FACTOR 1)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=")
    set(JOULEMARK_SANITIZED ON)
    set(JOULEMARK_TIMEOUT_FACTOR 5)
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  # Optimising test code costs more than running it.
  set(JOULEMARK_TEST_OPTIONS -O0)
  joulemark_shared_headers(test FOR_PROGRAMS HEADERS <gtest/gtest.h> <gmock/gmock.h> LINKS GTest::gmock OPTIONS ${JOULEMARK_TEST_OPTIONS})
endif()

# joulemark_test(NAME SOURCES a_test.cpp ... [LINKS target ...] [LABELS unit] [OWN_HEADERS])
# One GoogleTest binary; every TEST becomes one ctest test. Label "unit" unless told otherwise.
function(joulemark_test name)
  cmake_parse_arguments(arg "OWN_HEADERS" "" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINKS} GTest::gmock_main joulemark_warnings)
  target_compile_options(${name} PRIVATE ${JOULEMARK_TEST_OPTIONS})
  if(NOT arg_OWN_HEADERS)
    joulemark_use_headers(${name} test)
  endif()
  # Tests run in the source folder: with relative paths ccache serves every clone.
  cmake_path(RELATIVE_PATH CMAKE_BINARY_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE build)
  target_compile_definitions(${name} PRIVATE
    JOULEMARK_FIXTURES="tests/fixtures" JOULEMARK_BINARY_DIR="${build}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  math(EXPR timeout "120 * ${JOULEMARK_TIMEOUT_FACTOR}")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${timeout})
endfunction()

# joulemark_script_test(NAME SCRIPT path.py [LABELS e2e] [TIMEOUT s])
# A Python unittest script that runs the real binaries; JOULEMARK_BIN names their folder.
function(joulemark_script_test name)
  cmake_parse_arguments(arg "" "SCRIPT;TIMEOUT" "LABELS" ${ARGN})
  if(NOT arg_LABELS)
    set(arg_LABELS e2e)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR timeout "${arg_TIMEOUT} * ${JOULEMARK_TIMEOUT_FACTOR}")
  add_test(NAME ${name} COMMAND python3 -B ${arg_SCRIPT} -v WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${timeout} ENVIRONMENT
    "JOULEMARK_SANITIZED=${JOULEMARK_SANITIZED};JOULEMARK_BIN=${CMAKE_BINARY_DIR}/bin;JOULEMARK_BUILD=${CMAKE_BINARY_DIR};JOULEMARK_SOURCE=${PROJECT_SOURCE_DIR}")
endfunction()
