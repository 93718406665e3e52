// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace joulemark::study {

/// Lines on stderr about a running study: lasting ones, and on a terminal a live one below them.
class Progress {
  public:
    explicit Progress(bool quiet);
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    bool is_live() const { return is_live_; }
    void say(const std::string& line);   ///< unless quiet
    void warn(const std::string& line);  ///< always
    void live(const std::string& line);  ///< replaces the live line; nothing where stderr is no terminal

  private:
    void clear();

    bool quiet_;
    bool is_live_;
    bool shown_ = false;
};

}  // namespace joulemark::study
