#!/usr/bin/env bash
# Installs what ff needs to be built, tested and run, from Debian's own archive (Debian 12 and 13).
#
#     tools/install-deps.sh            what building, the tests and the demo need
#     tools/install-deps.sh --dev      also what tools/check.sh --all, the goldens and the benchmarks need
#     tools/install-deps.sh --lint     also the formatter and the linter (a part of --dev)
#     tools/install-deps.sh --check    installs nothing; names what is missing, exit status 1 if anything is
#
# Needs bash, apt and dpkg only, and root or sudo when something is missing.
set -euo pipefail

# One line each: the package, then why.
build_and_run() {
  cat <<'LIST'
g++ compiles ff (C++20: g++ 12 or later)
cmake configures the build (3.25 or later)
ninja-build runs the build
ccache makes a second build of the same sources fast
libonnx-dev reads and writes ONNX models
protobuf-compiler generates the code of plan, strategy and machine files
libprotobuf-dev the run-time library of that code
zlib1g-dev reads gzipped data sets
libdnnl-dev oneDNN: the CPU kernels
ocl-icd-opencl-dev oneDNN's CMake package asks for OpenCL
libopenmpi-dev Open MPI: communication between ranks
openmpi-bin mpirun
libcli11-dev command lines
nlohmann-json3-dev reports, logs and traces
libpugixml-dev reads topologies that NCCL dumps
libhwloc-dev the cores and memory of this host
catch2 the tests
libonnx-testdata the ONNX standard's own test vectors
dataset-fashion-mnist 70,000 labelled images, the demo's data
LIST
}

lint() {
  cat <<'LIST'
clang-format checks the formatting of the sources
clang-tidy checks the sources for common mistakes
git names the files that changed
LIST
}

dev() {
  lint
  cat <<'LIST'
clang a second compiler's opinion
libomp-dev OpenMP for that compiler
shellcheck checks the shell scripts
iproute2 network namespaces: several hosts on one machine
debootstrap the other Debian release in a folder
valgrind counts instructions repeatably
python3-torch PyTorch: expected values of golden tests, and the other side of benchmarks
python3-torchvision the models of the benchmarks
bible-kjv text for language models
python3-onnx writes models for golden tests
LIST
}

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; }

check_only=no
sets=(build_and_run)
for argument in "$@"; do
  case $argument in
    --check) check_only=yes ;;
    --dev) sets+=(dev) ;;
    --lint) sets+=(lint) ;;
    -h | --help) usage; exit 0 ;;
    *) echo "install-deps: unknown option '$argument'" >&2; usage >&2; exit 2 ;;
  esac
done

for tool in apt-get dpkg-query; do
  if ! command -v "$tool" >/dev/null; then
    echo "install-deps: no $tool here: this script knows Debian 12 and 13 only" >&2
    echo "hint: the packages and their reasons are listed in $0" >&2
    exit 3
  fi
done
if [[ -r /etc/os-release ]]; then
  # shellcheck source=/dev/null
  id=$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")
  case $id in
    "debian 12" | "debian 13") ;;
    *) echo "install-deps: this is '$id'; tried on Debian 12 and 13 only, going on" >&2 ;;
  esac
fi

installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == "install ok installed" ]]; }

missing=()
for set in "${sets[@]}"; do
  while read -r package why; do
    if ! installed "$package" && [[ " ${missing[*]-} " != *" $package "* ]]; then
      missing+=("$package")
      printf '  %-24s %s\n' "$package" "$why"
    fi
  done < <("$set")
done

if ((${#missing[@]} == 0)); then
  echo "install-deps: nothing is missing"
  exit 0
fi
if [[ $check_only == yes ]]; then
  echo "install-deps: ${#missing[@]} packages are missing (above)"
  exit 1
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install-deps: installing needs root, and there is no sudo" >&2
    echo "hint: run as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 3
  fi
  as_root=(sudo)
fi

echo "install-deps: installing the ${#missing[@]} packages above"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
echo "install-deps: done"
