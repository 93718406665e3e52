// SPDX-License-Identifier: Apache-2.0
#include "meter/startup_memory.h"

#include <cstdint>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace joulemark::meter {
namespace {

/// Relocations written into code would be lost with its pages.
bool writes_into_code(const dl_phdr_info& object) {
    for (int index = 0; index < object.dlpi_phnum; ++index) {
        const ElfW(Phdr)& header = object.dlpi_phdr[index];
        if (header.p_type != PT_DYNAMIC) {
            continue;
        }
        for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
             entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_TEXTREL ||
                (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0)) {
                return true;
            }
        }
    }
    return false;
}

int release(dl_phdr_info* object, std::size_t, void*) {
    if (writes_into_code(*object)) {
        return 0;
    }
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    for (int index = 0; index < object->dlpi_phnum; ++index) {
        const ElfW(Phdr)& header = object->dlpi_phdr[index];
        if (header.p_type == PT_LOAD && (header.p_flags & PF_W) == 0) {
            const std::uintptr_t begin = object->dlpi_addr + header.p_vaddr;
            const std::uintptr_t first = begin / page * page;
            madvise(reinterpret_cast<void*>(first), begin + header.p_memsz - first, MADV_DONTNEED);
        }
    }
    return 0;
}

}  // namespace

void release_startup_memory() {
    dl_iterate_phdr(release, nullptr);
}

}  // namespace joulemark::meter
