// SPDX-License-Identifier: Apache-2.0
#include "launch/process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"

namespace joulemark::launch {
namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
    std::vector<std::string> result;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (!added.contains(std::string(text.substr(0, text.find('='))))) {
            result.emplace_back(text);
        }
    }
    for (const auto& [name, value] : added) {
        result.push_back(name + "=" + value);
    }
    return result;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) {
        result.push_back(word.data());
    }
    result.push_back(nullptr);
    return result;
}

}  // namespace

SignalGate::SignalGate() {
    sigemptyset(&gate_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
        sigaddset(&gate_, signal);
    }
    sigprocmask(SIG_BLOCK, &gate_, &previous_);
}

SignalGate::~SignalGate() {
    while (wait(std::chrono::milliseconds(0))) {
    }
    sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<siginfo_t> SignalGate::wait(std::chrono::milliseconds timeout) const {
    const timespec limit{.tv_sec = timeout.count() / 1000, .tv_nsec = timeout.count() % 1000 * 1'000'000};
    siginfo_t info{};
    return sigtimedwait(&gate_, &info, &limit) < 0 ? std::nullopt : std::optional(info);
}

Process::Process(const Invocation& invocation, const std::filesystem::path& log, const SignalGate& gate) {
    const files::Descriptor output(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    const files::Descriptor input(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!output || !input) {
        throw environment_error("cannot write {}: {}", log.string(), std::strerror(errno));
    }
    // Everything that allocates happens before the fork: a loaded vendor library may have started threads.
    std::vector<std::string> words = invocation.command;
    std::vector<std::string> environment = merged_environment(invocation.environment);
    const std::vector<char*> argv = pointers(words);
    const std::vector<char*> envp = pointers(environment);
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) {
        throw environment_error("cannot start a process: {}", std::strerror(errno));
    }
    if (pid_ > 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(128 + SIGTERM);
    }
    dup2(input.get(), STDIN_FILENO);
    dup2(output.get(), STDOUT_FILENO);
    dup2(output.get(), STDERR_FILENO);
    sigprocmask(SIG_SETMASK, &gate.previous(), nullptr);
    execvpe(argv[0], argv.data(), envp.data());
    const int error = errno;
    dprintf(STDERR_FILENO, "joulemark: cannot execute %s: %s\n", argv[0], std::strerror(error));
    _exit(error == ENOENT ? 127 : 126);
}

Process::~Process() {
    if (!status()) {
        send(SIGKILL);
        while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

std::optional<int> Process::status() {
    int status = 0;
    if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) {
        status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    return status_;
}

void Process::send(int signal) const {
    if (!status_) {
        kill(pid_, signal);
    }
}

}  // namespace joulemark::launch
