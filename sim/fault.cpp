// SPDX-License-Identifier: Apache-2.0
#include "sim/fault.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/csv.h"
#include "core/error.h"
#include "core/units.h"
#include "vendor/nvml_api.h"

namespace joulemark::sim {
namespace {

struct Kind {
    FaultKind kind;
    std::string_view name;
    bool function;
    bool value;
    bool time;
};

constexpr Kind kinds[] = {
    {FaultKind::counter_freeze, "counter-freeze", false, false, true},
    {FaultKind::counter_reset, "counter-reset", false, false, true},
    {FaultKind::counter_wrap, "counter-wrap", false, true, false},
    {FaultKind::power_frozen, "power-frozen", false, false, true},
    {FaultKind::gpu_lost, "gpu-lost", false, false, true},
    {FaultKind::not_supported, "not-supported", true, false, true},
    {FaultKind::no_permission, "no-permission", true, false, true},
    {FaultKind::slow, "slow", true, true, true},
    {FaultKind::index_order, "index-order", false, false, false},
    {FaultKind::mig, "mig", false, false, false},
};

#define JOULEMARK_SIM_NAME(member, symbol, ...) symbol,
constexpr std::string_view functions[] = {JOULEMARK_NVML_OPTIONAL(JOULEMARK_SIM_NAME)
                                          // Two fields of nvmlDeviceGetFieldValues, which fail one by one.
                                          "NVML_FI_DEV_POWER_AVERAGE",
                                          "NVML_FI_DEV_POWER_INSTANT"};
#undef JOULEMARK_SIM_NAME

/// Cuts what follows the last `mark` off `text`.
std::optional<std::string_view> cut(std::string_view& text, char mark) {
    const std::size_t at = text.rfind(mark);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    const std::string_view tail = text.substr(at + 1);
    text.remove_suffix(text.size() - at);
    return tail;
}

}  // namespace

Fault parse_fault(std::string_view spec) {
    std::string_view rest = spec;
    const auto gpu = cut(rest, '#');
    const auto time = cut(rest, '@');
    const auto value = cut(rest, '=');
    const auto function = cut(rest, ':');

    const Kind* kind = std::ranges::find(kinds, rest, &Kind::name);
    if (kind == std::end(kinds)) {
        std::string names;
        for (const Kind& known : kinds) {
            names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
        }
        throw bad_input("fault \"{}\": there is no kind \"{}\"; known are {}", spec, rest, names);
    }
    const auto check = [&](bool given, bool wanted, std::string_view what, std::string_view form) {
        if (given != wanted) {
            throw bad_input("fault \"{}\": {} {} {} ({})", spec, kind->name, wanted ? "needs" : "takes no",
                            what, form);
        }
    };
    check(function.has_value(), kind->function, "function", ":FUNCTION");
    check(value.has_value(), kind->value, "value", "=NUMBER");
    if (time) {
        check(true, kind->time, "time", "@SECONDS");
    }

    Fault fault{kind->kind, -1, 0, 0, ""};
    if (function) {
        if (std::ranges::find(functions, *function) == std::end(functions)) {
            throw bad_input("fault \"{}\": the simulated library has no device function \"{}\"", spec,
                            *function);
        }
        function->copy(fault.function, sizeof fault.function - 1);
    }
    const auto number = [&](std::string_view text, std::string_view what) {
        const auto parsed = csv::number(text);
        if (!parsed || !(*parsed >= 0 && *parsed < 1e9)) {
            throw bad_input("fault \"{}\": {} has to be a number from 0, not \"{}\"", spec, what, text);
        }
        return *parsed;
    };
    if (value) {
        fault.value = number(*value, "the value");
        if (fault.value == 0) {
            throw bad_input("fault \"{}\": the value has to be above 0", spec);
        }
    }
    if (time) {
        fault.after_ns = nanoseconds(number(*time, "the time"));
    }
    if (gpu) {
        const auto index = csv::integer(*gpu);
        if (!index || *index < 0 || *index > 65535) {
            throw bad_input("fault \"{}\": the GPU has to be a number from 0, not \"{}\"", spec, *gpu);
        }
        fault.gpu = static_cast<std::int32_t>(*index);
    }
    return fault;
}

std::string to_string(const Fault& fault) {
    std::string text(std::ranges::find(kinds, fault.kind, &Kind::kind)->name);
    if (fault.function[0] != '\0') {
        text += fmt::format(":{}", fault.function);
    }
    if (fault.value > 0) {
        text += fmt::format("={}", fault.value);
    }
    if (fault.after_ns > 0) {
        text += fmt::format("@{}", static_cast<double>(fault.after_ns) / ns_per_s);
    }
    if (fault.gpu >= 0) {
        text += fmt::format("#{}", fault.gpu);
    }
    return text;
}

}  // namespace joulemark::sim
