// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace joulemark::sensors {

using Environment = std::map<std::string, std::string, std::less<>>;
/// The variables of this process.
Environment process_environment();

/// What a GPU can be named by.
struct GpuIdentity {
    int index = 0;  ///< the management library's index on this node
    std::string name;
    std::string uuid = {};               ///< "GPU-8932f937-d72c-..."
    std::string pci_bus_id = {};         ///< "00000000:3b:00.0"
    std::optional<unsigned> minor = {};  ///< of /dev/nvidia<minor>, by which Slurm counts
    std::vector<std::string> mig_uuids = {};
};

/// The GPUs a job may use and what said so.
struct Visibility {
    std::vector<int> indices;  ///< GpuIdentity::index, ascending, each once
    std::string source;        ///< "CUDA_VISIBLE_DEVICES=0,1", or "all" when nothing restricts
    std::vector<std::string> warnings;

    bool contains(int index) const;
};

/// NVIDIA GPUs: CUDA_VISIBLE_DEVICES, then SLURM_STEP_GPUS, SLURM_JOB_GPUS and NVIDIA_VISIBLE_DEVICES: the
/// first that is set decides. Where several ranks share the node, Slurm's list comes first:
/// CUDA_VISIBLE_DEVICES may then be one rank's share, and the node is metered once for all. Indices and UUIDs
/// are read as CUDA reads them: from left to right, an entry that names no GPU ends the list.
Visibility visible_nvidia_gpus(const Environment& environment, std::span<const GpuIdentity> gpus);

/// AMD GPUs: ROCR_VISIBLE_DEVICES, and HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES, which HIP honours too)
/// among what that leaves; else Slurm's lists.
Visibility visible_amd_gpus(const Environment& environment, std::span<const GpuIdentity> gpus);

/// Ranks that the launcher started on this node, as its variables tell; 1 without any.
int ranks_on_node(const Environment& environment);

}  // namespace joulemark::sensors
