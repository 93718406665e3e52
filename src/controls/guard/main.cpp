// SPDX-License-Identifier: Apache-2.0
//
// joulemark-guard JOURNAL: waits on standard input for the end of the run that started it. One byte says that the run
// has put its GPU settings back itself; end-of-file without it says that the run was killed, and the journal is undone.
#include <csignal>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "controls/journal.h"
#include "core/error.h"
#include "core/streams.h"

namespace {

bool run_said_done() {
    char byte = 0;
    ssize_t got = -1;
    do {
        got = read(STDIN_FILENO, &byte, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace joulemark;
    if (argc != 2) {
        say("joulemark-guard: started by joulemark run, not by hand");
        return 2;
    }
    for (const int ignored : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE}) {
        std::signal(ignored, SIG_IGN);
    }
    if (run_said_done()) {
        return 0;
    }
    const auto journal = controls::Journal::read(argv[1]);
    if (!journal) {
        return 0;  // the run had removed it: everything was put back before it died
    }
    const auto library = nvml::Library::open();
    if (!library) {
        return 3;  // the journal stays for `joulemark restore`
    }
    const auto outcomes = controls::undo(journal->changes, (*library)->devices().devices);
    if (std::ranges::any_of(outcomes, [](const auto& o) { return o.state == controls::Outcome::State::failed; })) {
        return 3;
    }
    journal->remove();
    return 0;
}
