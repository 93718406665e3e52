// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/model.h"

namespace joulemark::report {

/// The page without its data: scripts, styles and fonts in one HTML file, built from web/. Nothing in a
/// build with JOULEMARK_WEB=OFF.
std::optional<std::string_view> page();

/// `page` with the model inside. The model stands in the file as JSON, so that a reader can take it out
/// again; traces are gzip in base64, one block per run. Text from runs cannot become markup: the JSON
/// holds no '<', and the page inserts text as text only.
std::string html(const Model& model, std::string_view page);

/// The gzip of `bytes` (RFC 1952) and the base64 of it (RFC 4648), as the trace blocks use them.
std::string gzip(std::string_view bytes);
std::string base64(std::string_view bytes);

}  // namespace joulemark::report
