#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The long forms of two tests of tests/e2e/measurement_test.py: 200 simulated runs killed at random moments, and seven days of
# eight simulated GPUs at 10 Hz: about five minutes each, and some 3 GB of disk in TMPDIR for the second.
#
#   bench/endurance.sh [BUILD]      (default: build/lean)
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build/lean}" && pwd)
export JOULEMARK_BIN="$build/bin" JOULEMARK_BUILD="$build" JOULEMARK_SOURCE="$root"
export JOULEMARK_KILLED_RUNS=200 JOULEMARK_DAYS_HZ=10
cd "$root/tests/e2e"
exec python3 -B measurement_test.py -v Crashes Days
