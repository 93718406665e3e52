#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building, testing and the demo need on Debian (or Ubuntu); does nothing where it is already there.
#
#   scripts/deps.sh               install
#   scripts/deps.sh --bundle DIR  collect the libraries as Debian packages, and the report's web bundle, for a GPU node without network:
#                                 there, DIR/unpack.sh PREFIX unpacks those it lacks, without installing anything
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.13.0
nvml_header=nvidia-nvml-dev-cu12==12.9.79
cache=${JOULEMARK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/joulemark}

tools=(cmake ninja-build ccache g++ pkg-config python3 python3-venv python3-jsonschema util-linux)
libraries=(libcli11-dev libfmt-dev nlohmann-json3-dev libyaml-cpp-dev libsqlite3-dev libeigen3-dev libboost-dev
           libboost-math-dev libjpeg-dev libhdf5-dev libutf8proc-dev zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev)
parallel=(libopenmpi-dev openmpi-bin)
testing=(slurm-wlm munge chromium sqlite3)

say() { printf 'deps: %s\n' "$*" >&2; }

missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || printf '%s\n' "$package"
    done
}

install_packages() {
    local wanted=("${tools[@]}" "${libraries[@]}" "${parallel[@]}" "${testing[@]}") missing root=()
    command -v npm >/dev/null || wanted+=(nodejs npm)
    mapfile -t missing < <(missing_packages "${wanted[@]}")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "these packages are missing; install them as root: apt-get install ${missing[*]}"
            exit 3
        fi
        root=(sudo)
    fi
    say "installing ${missing[*]}"
    "${root[@]}" apt-get update -qq
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# The wheel serves as libtorch: headers and libraries, CPU build. numpy is for the tests' references only.
install_torch() {
    local venv=$cache/venv-torch-$torch_version
    [ ! -e "$venv/.complete" ] || return 0
    say "installing the PyTorch $torch_version wheel into $venv"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check "torch==$torch_version" numpy
    touch "$venv/.complete"
}

# NVIDIA's own header: a test holds our declarations against it.
install_nvml_header() {
    local folder=$cache/nvml-dev
    [ ! -e "$folder/.complete" ] || return 0
    rm -rf "$folder"
    "$cache/venv-torch-$torch_version/bin/pip" install -q --disable-pip-version-check --no-deps --target "$folder" "$nvml_header"
    touch "$folder/.complete"
}

bundle() {
    local folder=$1 names=()
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    # Libraries with what they need at run time, but not the C library and its kind, which the node has.
    mapfile -t names < <(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
        --no-replaces --no-enhances "${libraries[@]}" | grep -E '^lib[a-z0-9.+-]*(cli11|fmt|yaml-cpp|sqlite3|eigen3|boost|jpeg|turbo|utf8proc|hdf5|aec|sz2|gtest|gmock|googletest|benchmark)|^(nlohmann-json3|zlib1g|googletest)' \
        | grep -vE 'mpi|python|numpy|graph-parallel' | sort -u)
    (cd "$folder" && apt-get download -qq "${names[@]}")
    cat > "$folder/unpack.sh" <<'UNPACK'
#!/bin/sh
# unpack.sh PREFIX: unpacks below PREFIX the packages that this node lacks; build with -DCMAKE_PREFIX_PATH=PREFIX/usr
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
for package in "$here"/*.deb; do
    name=$(basename "$package")
    # Headers of one release beside the library of another would not fit.
    dpkg-query -W -f '${db:Status-Status}' "${name%%_*}" 2>/dev/null | grep -qx installed || dpkg -x "$package" "$1"
done
UNPACK
    chmod +x "$folder/unpack.sh"
    if [ -d build/release/web ]; then
        rm -rf "$folder/web"
        cp -r build/release/web/dist "$folder/web"
    else
        say "build first to add the report's web bundle"
    fi
    say "$(find "$folder" -name '*.deb' | wc -l) packages in $folder ($(du -sh "$folder" | cut -f1))"
}

case ${1:-} in
    "") install_packages; install_torch; install_nvml_header ;;
    --bundle) [ $# -eq 2 ] || { say "--bundle needs a directory"; exit 2; }; bundle "$2" ;;
    *) say "unknown argument '$1': deps.sh [--bundle DIR]"; exit 2 ;;
esac
