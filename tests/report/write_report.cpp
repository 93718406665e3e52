// SPDX-License-Identifier: Apache-2.0
// Reads a report model as JSON from standard input and writes its page to the file given: the browser test's
// way to the same code that `joulemark report` uses. Traces stand in it as full series.
#include <cmath>
#include <iostream>

#include "core/error.h"
#include "core/files.h"
#include "report/html.h"

using nlohmann::json;

namespace {

std::vector<double> numbers(const json& list) {
    std::vector<double> values;
    for (const json& value : list) {
        values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
    return values;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: write_report FILE < model.json\n";
        return 2;
    }
    try {
        const json document = json::parse(std::cin);
        joulemark::report::Model model{document.at("analysis"), document.at("study"), document.at("environment"),
                                       document.at("generated"), {}};
        for (const json& trace : document.at("traces")) {
            model.traces.push_back({trace.at("run"), trace.at("host"), trace.at("device"), trace.at("metric"),
                                    trace.at("time_ns"), numbers(trace.at("minimum")), numbers(trace.at("mean")),
                                    numbers(trace.at("maximum"))});
        }
        const auto page = joulemark::report::page();
        joulemark::files::write_atomically(argv[1], joulemark::report::html(model, page.value()));
    } catch (const std::exception& error) {
        std::cerr << "write_report: " << error.what() << '\n';
        return 1;
    }
}
