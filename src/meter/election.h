// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/files.h"

namespace joulemark::meter {

/// One sampler per node: of all ranks of a job step that run `joulemark run` on this node, the one that gets
/// a kernel lock in node-local storage meters, and the others send their marks to it. The locks end with the
/// processes that hold them, so nothing a crash leaves behind can block anyone.
///
/// Two files beside each other: NAME.lock is held exclusively by the sampler and holds the path of its marker
/// socket; NAME.ranks is held shared by every other rank while its command runs, and has a line of each when
/// it comes ("3") and when its command has ended ("3 7": rank, exit status).
class Election {
  public:
    /// The rank that meters.
    class Sampler {
      public:
        /// Lets the other ranks know where to send their marks.
        void announce(const std::string& socket_path);
        /// Whether the command of another rank still runs. Those in `ends` before this is asked are told of.
        bool others_run() const;
        /// The ranks that have come, and how their commands ended, by rank.
        struct End {
            int rank = 0;
            std::optional<int> exit_status = {};  ///< absent: not told yet, or killed before it could tell
        };
        std::vector<End> ends() const;
        /// Removes the files.
        ~Sampler();
        Sampler(Sampler&&) = default;
        Sampler& operator=(Sampler&&) = delete;

      private:
        friend Election;
        Sampler(files::Descriptor lock, files::Descriptor ranks, std::array<std::string, 2> paths)
            : lock_(std::move(lock)), ranks_(std::move(ranks)), paths_(std::move(paths)) {}
        files::Descriptor lock_, ranks_;
        std::array<std::string, 2> paths_;
    };
    /// A rank that another one meters; the sampler waits for the end of this object.
    struct Member {
        std::string socket_path;
        files::Descriptor ranks;
        int rank;

        /// Lets the sampler know; never fails.
        void ended(int exit_status) const;
    };

    /// `key` names the job step and the node. Throws environment_error when the files cannot be used, or when
    /// a sampler is there but does not announce itself within ten seconds.
    static std::variant<Sampler, Member> hold(const std::filesystem::path& folder, const std::string& key,
                                              int rank);
};

}  // namespace joulemark::meter
