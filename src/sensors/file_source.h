// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <utility>

#include "core/clock.h"
#include "sensors/counter.h"
#include "sensors/file_tree.h"
#include "sensors/source.h"

namespace joulemark::sensors {

/// One metric: the number in a file, times `scale` to SI.
class FileGauge final : public Source {
  public:
    FileGauge(SourceInfo info, OpenFile file, double scale)
        : Source(std::move(info)), file_(std::move(file)), scale_(scale) {}

    void read(std::span<double> values) noexcept override {
        const auto number = file_.number();
        values[0] = number ? static_cast<double>(*number) * scale_ : std::numeric_limits<double>::quiet_NaN();
    }

  private:
    OpenFile file_;
    double scale_;
};

/// One metric: the energy counter in a file. Real joules go by the machine's clock.
class FileCounter final : public Source {
  public:
    FileCounter(SourceInfo info, OpenFile file, CounterModel model)
        : Source(std::move(info)), file_(std::move(file)), counter_(model) {}

    void read(std::span<double> values) noexcept override {
        values[0] = counter_.update(clock_.now_ns(), file_.number());
    }
    CounterEvents events() const override { return counter_.events(); }

  private:
    OpenFile file_;
    Counter counter_;
    MonotonicClock clock_;
};

}  // namespace joulemark::sensors
