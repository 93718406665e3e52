// SPDX-License-Identifier: Apache-2.0
//
// A look-alike librocm_smi64.so with the functions that Joulemark calls.
#include "sensors/fake_rocm_smi.h"

#include <cstdio>

using joulemark::sensors::FakeRocm;

extern "C" {

FakeRocm fake_rocm;

int rsmi_init(std::uint64_t) {
    return 0;
}
int rsmi_shut_down() {
    return 0;
}
int rsmi_num_monitor_devices(std::uint32_t* count) {
    *count = fake_rocm.count;
    return 0;
}
int rsmi_dev_name_get(std::uint32_t, char* name, std::size_t size) {
    std::snprintf(name, size, "AMD Instinct MI250X");
    return 0;
}
int rsmi_dev_unique_id_get(std::uint32_t gpu, std::uint64_t* id) {
    *id = 0xabc0 + gpu;
    return 0;
}
int rsmi_dev_pci_id_get(std::uint32_t gpu, std::uint64_t* id) {
    *id = (0xc1 + gpu) << 8;
    return 0;
}
int rsmi_dev_power_ave_get(std::uint32_t gpu, std::uint32_t, std::uint64_t* power) {
    *power = fake_rocm.gpus[gpu].power_uw;
    return 0;
}
int rsmi_dev_energy_count_get(std::uint32_t gpu, std::uint64_t* counts, float* resolution,
                              std::uint64_t* time) {
    *counts = fake_rocm.gpus[gpu].counts;
    *resolution = 15.5F;
    *time = 1;
    return 0;
}
int rsmi_dev_power_cap_range_get(std::uint32_t, std::uint32_t, std::uint64_t* high, std::uint64_t* low) {
    *high = 560'000'000;
    *low = 100'000'000;
    return 0;
}
int rsmi_dev_memory_total_get(std::uint32_t, int, std::uint64_t* total) {
    *total = 64'000;
    return 0;
}
int rsmi_dev_memory_usage_get(std::uint32_t, int, std::uint64_t* used) {
    *used = 32'000;
    return 0;
}
int rsmi_dev_busy_percent_get(std::uint32_t gpu, std::uint32_t* busy) {
    *busy = fake_rocm.gpus[gpu].busy;
    return fake_rocm.gpus[gpu].busy_status;
}
int rsmi_dev_temp_metric_get(std::uint32_t, std::uint32_t sensor, int, std::int64_t* temperature) {
    *temperature = 61'000;
    return sensor == 0 ? 0 : 2;  // no junction sensor
}

}  // extern "C"
