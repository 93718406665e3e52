#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing and builds the release preset into build/release.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/deps.sh
log=build/release/configure.log
mkdir -p build/release
cmake --preset release > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build --preset release
