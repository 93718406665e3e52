#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the gpu preset against the PyTorch of PATH's python3. Sourced by the scripts here, which set `out` and `bundle`: a
# folder made by `scripts/deps.sh --bundle` for a node without package registries, or empty.
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
options=(-DJOULEMARK_TORCH="$torch")
if [ -n "$bundle" ]; then
    prefix=$PWD/build/bundle
    "$bundle/unpack.sh" "$prefix"
    options+=(-DCMAKE_PREFIX_PATH="$prefix/usr" -DJOULEMARK_WEB_BUNDLE="$(cd "$bundle" && pwd)/web")
    export LD_LIBRARY_PATH=$prefix/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

step() { printf '\n== %s (%s)\n' "$1" "$(date +%T)"; }

step build
cmake --preset gpu "${options[@]}" > "$out/configure.log" 2>&1 || { tail -20 "$out/configure.log"; exit 1; }
cmake --build --preset gpu -- -k 0 > "$out/build.log" 2>&1 || { grep -E 'error|FAILED' "$out/build.log" | head -20; tail -5 "$out/build.log"; exit 1; }
export PATH=$PWD/build/gpu/bin:$PATH
