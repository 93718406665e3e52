// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <variant>

#include "core/files.h"

namespace joulemark::meter {

/// One sampler per node: of all ranks of a job step that run `joulemark run` on this node, the one that gets
/// a kernel lock in node-local storage meters, and the others send their marks to it. The locks end with the
/// processes that hold them, so nothing a crash leaves behind can block anyone.
///
/// Two files beside each other: NAME.lock is held exclusively by the sampler and holds the path of its marker
/// socket; NAME.ranks is held shared by every other rank while its command runs, and has a byte for each.
class Election {
  public:
    /// The rank that meters.
    class Sampler {
      public:
        /// Lets the other ranks know where to send their marks.
        void announce(const std::string& socket_path);
        /// Whether `others` other ranks have come and all have ended.
        bool others_done(int others) const;
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
    };

    /// `key` names the job step and the node. Throws environment_error when the files cannot be used, or when
    /// a sampler is there but does not announce itself within ten seconds.
    static std::variant<Sampler, Member> hold(const std::filesystem::path& folder, const std::string& key);
};

}  // namespace joulemark::meter
