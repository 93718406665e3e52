// SPDX-License-Identifier: Apache-2.0
#include "sensors/visible_devices.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace joulemark::sensors {
namespace {

using Gpus = std::vector<const GpuIdentity*>;

std::optional<std::string> variable(const Environment& environment, std::string_view name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? ""
                                           : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> entries(std::string_view list) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t comma = list.find(',');
        parts.push_back(trimmed(list.substr(0, comma)));
        if (comma == std::string_view::npos) {
            return parts;
        }
        list.remove_prefix(comma + 1);
    }
}

std::optional<int> whole_number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The order in which a run-time library counts: by PCI bus id, or as listed where one is unknown.
Gpus in_pci_order(std::span<const GpuIdentity> gpus) {
    Gpus order;
    for (const GpuIdentity& gpu : gpus) {
        order.push_back(&gpu);
    }
    if (std::ranges::none_of(gpus, [](const GpuIdentity& gpu) { return gpu.pci_bus_id.empty(); })) {
        std::ranges::stable_sort(order, {}, [](const GpuIdentity* gpu) { return gpu->pci_bus_id; });
    }
    return order;
}

const GpuIdentity* only(const Gpus& candidates) {
    return candidates.size() == 1 ? candidates.front() : nullptr;
}

/// "GPU-8932f9" or any longer prefix that fits one GPU; "MIG-<uuid>"; "MIG-GPU-<uuid>/gi/ci" of old drivers.
const GpuIdentity* by_uuid(std::string_view entry, const Gpus& gpus) {
    if (constexpr std::string_view old_mig = "MIG-GPU-"; entry.starts_with(old_mig)) {
        entry.remove_prefix(4);
        entry = entry.substr(0, entry.find('/'));
    }
    Gpus fitting;
    for (const GpuIdentity* gpu : gpus) {
        const bool is_gpu = gpu->uuid.starts_with(entry);
        const bool is_slice = std::ranges::any_of(
            gpu->mig_uuids, [entry](const std::string& uuid) { return uuid.starts_with(entry); });
        if (is_gpu || is_slice) {
            fitting.push_back(gpu);
        }
    }
    return only(fitting);
}

/// Reads a list as CUDA and HIP do.
struct Selection {
    Gpus gpus;
    std::optional<std::string> stopped_at;  // the entry that names no GPU
    bool by_index = false;
};

Selection select(std::string_view list, const Gpus& order) {
    Selection selection;
    if (trimmed(list).empty() || trimmed(list) == "NoDevFiles") {
        return selection;
    }
    for (const std::string_view entry : entries(list)) {
        const GpuIdentity* gpu = nullptr;
        if (const auto index = whole_number(entry)) {
            selection.by_index = true;
            gpu = *index >= 0 && *index < static_cast<int>(order.size())
                      ? order[static_cast<std::size_t>(*index)]
                      : nullptr;
        } else if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) {
            gpu = by_uuid(entry, order);
        }
        if (gpu == nullptr) {
            if (entry != "-1") {
                selection.stopped_at = entry;
            }
            return selection;
        }
        selection.gpus.push_back(gpu);
    }
    return selection;
}

void warn_of(const Selection& selection, std::string_view name, Visibility& visibility) {
    if (selection.stopped_at) {
        visibility.warnings.push_back(
            fmt::format("{}: no GPU is called '{}'; it and what follows is ignored, as the GPU library does",
                        name, *selection.stopped_at));
    }
}

void set_indices(const Gpus& gpus, Visibility& visibility) {
    for (const GpuIdentity* gpu : gpus) {
        visibility.indices.push_back(gpu->index);
    }
    std::ranges::sort(visibility.indices);
    const auto repeated = std::ranges::unique(visibility.indices);
    visibility.indices.erase(repeated.begin(), repeated.end());
}

bool mixed_models(std::span<const GpuIdentity> gpus) {
    return std::ranges::any_of(gpus, [&](const GpuIdentity& gpu) { return gpu.name != gpus.front().name; });
}

Visibility from_cuda(const std::string& list, const Environment& environment,
                     std::span<const GpuIdentity> gpus) {
    Visibility visibility;
    visibility.source = fmt::format("CUDA_VISIBLE_DEVICES={}", list);
    const Selection selection = select(list, in_pci_order(gpus));
    set_indices(selection.gpus, visibility);
    warn_of(selection, "CUDA_VISIBLE_DEVICES", visibility);
    if (selection.by_index && mixed_models(gpus) &&
        variable(environment, "CUDA_DEVICE_ORDER") != "PCI_BUS_ID") {
        visibility.warnings.push_back(
            "CUDA_VISIBLE_DEVICES gives indices on a node with different GPUs, which CUDA counts fastest "
            "first; PCI bus "
            "order is assumed: set CUDA_DEVICE_ORDER=PCI_BUS_ID or give UUIDs");
    }
    return visibility;
}

/// "0,2-3": numbers and ranges, as Slurm writes them. Counted by device minor, else by index.
Visibility from_slurm(std::string_view name, const std::string& list, std::span<const GpuIdentity> gpus) {
    Visibility visibility;
    visibility.source = fmt::format("{}={}", name, list);
    Gpus chosen;
    const auto number_of = [](const GpuIdentity& gpu) {
        return gpu.minor ? static_cast<std::int64_t>(*gpu.minor) : gpu.index;
    };
    std::int64_t greatest = -1;  // a range is followed no further, whatever its end
    for (const GpuIdentity& gpu : gpus) {
        greatest = std::max(greatest, number_of(gpu));
    }
    std::int64_t listed = 0;
    for (const std::string_view entry : entries(list)) {
        const std::size_t dash = entry.find('-');
        const auto low = whole_number(entry.substr(0, dash));
        const auto high = dash == std::string_view::npos ? low : whole_number(entry.substr(dash + 1));
        if (!low || !high) {
            visibility.warnings.push_back(fmt::format("{}: '{}' is no number and is ignored", name, entry));
            continue;
        }
        listed += std::max<std::int64_t>(0, std::int64_t{*high} - *low + 1);
        for (std::int64_t number = *low; number <= std::min<std::int64_t>(*high, greatest); ++number) {
            const auto found = std::ranges::find(gpus, number, number_of);
            if (found != gpus.end()) {
                chosen.push_back(&*found);
            }
        }
    }
    if (std::ssize(chosen) < listed) {
        visibility.warnings.push_back(fmt::format("{} lists {} GPUs, {} of which can be reached from here",
                                                  name, listed, chosen.size()));
    }
    set_indices(chosen, visibility);
    return visibility;
}

std::optional<Visibility> from_slurm(const Environment& environment, std::span<const GpuIdentity> gpus) {
    for (const std::string_view name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
        if (const auto list = variable(environment, name); list && !list->empty()) {
            return from_slurm(name, *list, gpus);
        }
    }
    return std::nullopt;
}

Visibility everything(std::span<const GpuIdentity> gpus) {
    Visibility visibility;
    visibility.source = "all";
    set_indices(in_pci_order(gpus), visibility);
    return visibility;
}

/// Inside a container the runtime has already hidden the others, and its indices are the host's: only names
/// that still mean something here restrict.
Visibility from_container(const Environment& environment, std::span<const GpuIdentity> gpus) {
    const auto list = variable(environment, "NVIDIA_VISIBLE_DEVICES");
    if (!list || trimmed(*list).empty() || *list == "all" || *list == "void") {
        return everything(gpus);
    }
    Visibility visibility;
    visibility.source = fmt::format("NVIDIA_VISIBLE_DEVICES={}", *list);
    if (*list == "none") {
        return visibility;
    }
    if (entries(*list).size() == gpus.size()) {
        set_indices(in_pci_order(gpus), visibility);
        return visibility;
    }
    const Selection selection = select(*list, in_pci_order(gpus));
    set_indices(selection.gpus, visibility);
    warn_of(selection, "NVIDIA_VISIBLE_DEVICES", visibility);
    return visibility;
}

}  // namespace

Environment process_environment() {
    Environment environment;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::size_t equals = text.find('=');
        if (equals != std::string_view::npos) {
            environment.emplace(text.substr(0, equals), text.substr(equals + 1));
        }
    }
    return environment;
}

bool Visibility::contains(int index) const {
    return std::ranges::binary_search(indices, index);
}

int ranks_on_node(const Environment& environment) {
    constexpr std::array<std::string_view, 5> names{"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                                    "LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE",
                                                    "SLURM_STEP_TASKS_PER_NODE"};
    int ranks = 1;
    for (const std::string_view name : names) {
        if (const auto text = variable(environment, name)) {
            int value = 0;  // the leading number of "4(x2)" is enough: it tells one rank from several
            std::from_chars(text->data(), text->data() + text->size(), value);
            ranks = std::max(ranks, value);
        }
    }
    return ranks;
}

Visibility visible_nvidia_gpus(const Environment& environment, std::span<const GpuIdentity> gpus) {
    const auto cuda = variable(environment, "CUDA_VISIBLE_DEVICES");
    const int ranks = ranks_on_node(environment);
    if (!cuda || ranks > 1) {
        if (auto visibility = from_slurm(environment, gpus)) {
            return std::move(*visibility);
        }
    }
    if (!cuda) {
        return from_container(environment, gpus);
    }
    Visibility visibility = from_cuda(*cuda, environment, gpus);
    if (ranks > 1 && visibility.indices.size() < gpus.size()) {
        visibility.warnings.push_back(fmt::format(
            "CUDA_VISIBLE_DEVICES may be this rank's share only: {} ranks run on this node", ranks));
    }
    return visibility;
}

Visibility visible_amd_gpus(const Environment& environment, std::span<const GpuIdentity> gpus) {
    Visibility visibility;
    Gpus left = in_pci_order(gpus);
    for (const std::string_view name :
         {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}) {
        const auto list = variable(environment, name);
        if (!list || (name == "CUDA_VISIBLE_DEVICES" && environment.contains("HIP_VISIBLE_DEVICES"))) {
            continue;
        }
        Selection selection = select(*list, left);
        warn_of(selection, name, visibility);
        visibility.source += fmt::format("{}{}={}", visibility.source.empty() ? "" : " ", name, *list);
        left = std::move(selection.gpus);
    }
    if (!visibility.source.empty()) {
        set_indices(left, visibility);
        return visibility;
    }
    if (auto slurm = from_slurm(environment, gpus)) {
        return std::move(*slurm);
    }
    return everything(gpus);
}

}  // namespace joulemark::sensors
