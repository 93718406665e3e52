// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

// The assembler copies the built page into the object: no generated source, no compile time.
asm(".pushsection .rodata\n"
    "joulemark_page_begin:\n"
    ".incbin \"" JOULEMARK_PAGE
    "\"\n"
    "joulemark_page_end:\n"
    ".popsection\n"
    ".globl joulemark_page_begin\n"
    ".hidden joulemark_page_begin\n"
    ".globl joulemark_page_end\n"
    ".hidden joulemark_page_end\n");

extern "C" {
extern const char joulemark_page_begin[] __attribute__((visibility("hidden")));
extern const char joulemark_page_end[] __attribute__((visibility("hidden")));
}

namespace joulemark::report {

std::optional<std::string_view> page() {
    return std::string_view(joulemark_page_begin, static_cast<std::size_t>(joulemark_page_end - joulemark_page_begin));
}

}  // namespace joulemark::report
