// SPDX-License-Identifier: Apache-2.0
#include "meter/child.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace joulemark::meter {
namespace {

constexpr std::array relayed{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,  SIGUSR1,
                             SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH, SIGALRM};
/// Would end this process for what concerns its files and pipes only; a failed write tells the same.
constexpr std::array ignored{SIGPIPE, SIGXFSZ};

/// As without a relay: the kernel does not stop a process group that no shell could continue.
void stop_as_asked() {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    raise(SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
}

bool asks_to_end(int signal) {
    return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

}  // namespace

SignalRelay::SignalRelay() {
    sigset_t taken;
    sigemptyset(&taken);
    sigemptyset(&to_default_);
    for (const int signal : relayed) {
        struct sigaction action {};
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN) {  // nohup and background jobs ignore some: so does the child then
            sigaddset(&taken, signal);
        }
    }
    for (const int signal : ignored) {
        struct sigaction ignore {};
        struct sigaction before {};
        ignore.sa_handler = SIG_IGN;
        sigaction(signal, &ignore, &before);
        if (before.sa_handler != SIG_IGN) {
            sigaddset(&to_default_, signal);
        }
    }
    pthread_sigmask(SIG_BLOCK, &taken, &original_mask_);
    signals_ = files::Descriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    wake_ = files::Descriptor(eventfd(0, EFD_CLOEXEC));
    if (!signals_ || !wake_) {
        throw environment_error("cannot watch for signals: {}", std::strerror(errno));
    }
    thread_ = std::thread([this] { loop(); });
}

SignalRelay::~SignalRelay() {
    eventfd_write(wake_.get(), 1);
    thread_.join();
}

void SignalRelay::attach(pid_t child) {
    const std::scoped_lock lock(mutex_);
    child_ = child;
    if (child >= 0 && interrupting_signal_ != 0) {  // came while the child was being started
        kill(child, interrupting_signal_);
    }
}

void SignalRelay::detach() {
    attach(-1);
}

void SignalRelay::on_resize(std::function<void()> resized) {
    const std::scoped_lock lock(mutex_);
    resized_ = std::move(resized);
}

void SignalRelay::loop() {
    std::array<pollfd, 2> waits{pollfd{signals_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
    while (true) {
        poll(waits.data(), waits.size(), -1);
        signalfd_siginfo info{};
        while (read(signals_.get(), &info, sizeof info) == sizeof info) {
            handle(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
        }
        if ((waits[1].revents & POLLIN) != 0) {
            return;
        }
    }
}

void SignalRelay::handle(int signal, bool from_terminal) {
    const std::scoped_lock lock(mutex_);
    if (signal == SIGWINCH) {
        if (resized_) {
            resized_();
        }
        return;
    }
    if (child_ < 0) {
        if (asks_to_end(signal)) {
            interrupting_signal_ = signal;
            interrupted_.request_stop();
        }
    } else {
        child_asked_to_end_ = child_asked_to_end_ || asks_to_end(signal);
        if (!from_terminal) {
            kill(child_, signal);
        }
    }
    if (signal == SIGTSTP) {
        stop_as_asked();
    }
}

std::variant<Child, Child::Failure> Child::start(
    const std::vector<std::string>& command,
    const std::vector<std::pair<std::string, std::string>>& environment, SignalRelay& relay,
    std::optional<std::array<int, 2>> outputs) {
    std::vector<std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view variable = *entry;
        bool replaced = false;
        for (const auto& [name, value] : environment) {
            replaced = replaced || variable.substr(0, variable.find('=')) == name;
        }
        if (!replaced) {
            variables.emplace_back(variable);
        }
    }
    for (const auto& [name, value] : environment) {
        variables.push_back(name + "=" + value);
    }
    std::vector<char*> envp;
    for (std::string& variable : variables) {
        envp.push_back(variable.data());
    }
    envp.push_back(nullptr);
    std::vector<char*> argv;
    for (const std::string& word : command) {
        argv.push_back(const_cast<char*>(word.c_str()));  // as POSIX declares it; never written to
    }
    argv.push_back(nullptr);

    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &relay.original_mask());
    posix_spawnattr_setsigdefault(&attributes, &relay.to_default());
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (outputs) {
        posix_spawn_file_actions_adddup2(&actions, outputs->front(), STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, outputs->back(), STDERR_FILENO);
    }
    pid_t pid = -1;
    int error = posix_spawnp(&pid, argv.front(), &actions, &attributes, argv.data(), envp.data());
    if (error == ENOEXEC) {  // a script without a first line that names its interpreter: as shells do
        std::string shell = "/bin/sh";
        argv.insert(argv.begin(), shell.data());
        error = posix_spawn(&pid, shell.c_str(), &actions, &attributes, argv.data(), envp.data());
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error == ENOENT) {
        return Failure{127, fmt::format("command not found: {}", command.front())};
    }
    if (error != 0) {
        return Failure{126, fmt::format("cannot execute {}: {}", command.front(), std::strerror(error))};
    }
    relay.attach(pid);
    return Child(pid, relay);
}

void Child::wait_until_ended() const {
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
}

ChildEnd Child::reap() {
    relay_->detach();
    ChildEnd end;
    int status = 0;
    while (wait4(pid_, &status, 0, &end.usage) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        end.signal = WTERMSIG(status);
        end.exit_status = 128 + *end.signal;
    } else {
        end.exit_status = WEXITSTATUS(status);
    }
    return end;
}

}  // namespace joulemark::meter
