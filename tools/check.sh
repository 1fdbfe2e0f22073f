#!/usr/bin/env bash
# Everything that must hold before a change goes in: build, tests, formatting, linting, layering.
#
#     tools/check.sh          the release build, every test that is not slow, the linter on changed files
#     tools/check.sh --all    also sanitizers (address, undefined, thread), clang as the compiler, the linter on
#                             all files, slow tests
#
# Installs what is missing (tools/install-deps.sh). Every check runs, also after one has failed; the last line is
# "check: all passed" or names what failed, and the exit status is 0 or 1.
set -euo pipefail
cd "$(dirname "$0")/.."

all=no
case ${1-} in
  "") ;;
  --all) all=yes ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac

# Open MPI refuses root and busy machines unless told otherwise (4.1 reads OMPI_*, 5.0 also PRTE_*).
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export CTEST_OUTPUT_ON_FAILURE=1
# Tests start ranks that share cores: waiting threads give the core away.
export OMP_WAIT_POLICY=passive OMPI_MCA_mpi_yield_when_idle=1
jobs=$(nproc)
failed=()

# check NAME COMMAND...: a heading, the command, and its name among the failed if it fails.
check() {
  local name=$1 start=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  if "$@"; then
    printf '== %s: passed, %d s\n' "$name" "$((SECONDS - start))"
  else
    failed+=("$name")
    printf '== %s: FAILED, %d s\n' "$name" "$((SECONDS - start))"
  fi
}

# after NAME CHECK...: that check, if NAME has passed; what was never built is not tested.
after() {
  local needed=$1 failure
  shift
  for failure in ${failed[@]+"${failed[@]}"}; do
    if [[ $failure == "$needed" ]]; then
      printf '\n== %s: NOT RUN, it needs "%s"\n' "$1" "$needed"
      failed+=("$1")
      return
    fi
  done
  check "$@"
}

has() { command -v "$1" >/dev/null; }

install_packages() {
  if [[ $all == yes ]]; then tools/install-deps.sh --dev; else tools/install-deps.sh --lint; fi
}

build_preset() {  # build_preset PRESET CMAKE-OPTION...
  local preset=$1
  shift
  cmake --preset "$preset" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "$@" &&
    cmake --build --preset "$preset" --parallel "$jobs"
}

release_tests() { ctest --preset release --parallel "$jobs" --no-tests=error; }

asan_tests() {
  # Leaks are not looked for: Open MPI and protobuf keep memory until the end of the process.
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    ctest --preset asan --parallel "$jobs" --no-tests=error
}

tsan_tests() { OMP_NUM_THREADS=1 TSAN_OPTIONS=halt_on_error=1 ctest --preset tsan --parallel "$jobs" --no-tests=error; }

slow_tests() {
  if ctest --test-dir build/release -L slow -N | grep -q 'Total Tests: 0$'; then
    echo "there are no slow tests"
  else
    ctest --test-dir build/release -L slow
  fi
}

clang_build() {
  # The warnings that both compilers have are the point, those of clang alone are not errors.
  cmake -S . -B build/clang -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=clang \
    -DCMAKE_CXX_COMPILER=clang++ -DFF_WERROR=OFF &&
    cmake --build build/clang --parallel "$jobs" &&
    ctest --test-dir build/clang -L unit --parallel "$jobs" --no-tests=error
}

sources() { git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.cu' '*.cuh' '*.c'; }

existing() { while IFS= read -r file; do if [[ -e $file ]]; then printf '%s\n' "$file"; fi; done; }

formatting() {
  if ! has clang-format; then echo "skipped: no clang-format here"; return 0; fi
  local files file wrong=()
  mapfile -t files < <(sources | existing)
  for file in "${files[@]}"; do
    clang-format "$file" | cmp -s - "$file" || wrong+=("$file")
  done
  if ((${#wrong[@]} == 0)); then echo "${#files[@]} files"; return 0; fi
  echo "not formatted, mend by: clang-format -i ${wrong[*]}"
  return 1
}

shell_scripts() {
  local files file
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.sh' .ci/run | existing)
  for file in "${files[@]}"; do bash -n "$file" || return 1; done
  if has shellcheck; then shellcheck "${files[@]}"; else echo "syntax only: no shellcheck here"; fi
}

# Files that differ from where this branch left the main one; on the main branch itself, from the commit before.
changed() {
  local base='' main
  for main in origin/main origin/master main master; do
    if git rev-parse -q --verify "$main^{commit}" >/dev/null &&
      [[ $(git rev-parse "$main") != $(git rev-parse HEAD) ]]; then
      base=$(git merge-base "$main" HEAD 2>/dev/null) && [[ $base != $(git rev-parse HEAD) ]] && break
      base=''
    fi
  done
  if [[ -z $base ]]; then base=$(git rev-parse -q --verify HEAD~1 || true); fi
  if [[ -n $base ]]; then git diff --name-only --diff-filter=d "$base"; fi
  git ls-files --others --exclude-standard
}

# lint FILES...: clang-tidy by the compile commands of the release build; a file that is in no target is not known there.
lint() {
  local known=() file
  for file in "$@"; do
    if grep -qF "\"file\": \"$PWD/$file\"" build/release/compile_commands.json; then known+=("$file"); fi
  done
  if ((${#known[@]} == 0)); then echo "no source to lint"; return 0; fi
  echo "${#known[@]} files"
  printf '%s\n' "${known[@]}" | timeout "$lint_seconds" \
    xargs -P "$jobs" -n 1 clang-tidy -p build/release --quiet \
    --extra-arg=-Wno-unknown-warning-option 2> >(grep -vE 'warnings? generated' >&2) || {
    local status=$?
    if ((status != 124)); then return 1; fi
    echo "stopped after $lint_seconds s: the rest is left to tools/check.sh --all"
  }
}

linting() {
  if ! has clang-tidy; then echo "skipped: no clang-tidy here"; return 0; fi
  local files
  if [[ $all == yes ]]; then
    lint_seconds=7200
    mapfile -t files < <(sources | grep '\.cc$' | existing)
  else
    lint_seconds=180
    # Of the tests none: Catch's macros take most of the time and show nothing.
    mapfile -t files < <(changed | grep '\.cc$' | grep -v '^test/' | sort -u | existing)
  fi
  lint "${files[@]}"
}

check "packages" install_packages
check "layering" tools/check-layering.sh
check "layering's own test" tools/check-layering.sh --self-test
check "formatting" formatting
check "shell scripts" shell_scripts
check "build" build_preset release -DFF_TESTS=ON
after "build" "tests" release_tests
check "linting" linting
if [[ $all == yes ]]; then
  after "build" "slow tests" slow_tests
  check "build with address and undefined sanitizers" build_preset asan
  after "build with address and undefined sanitizers" "tests with address and undefined sanitizers" asan_tests
  check "build with thread sanitizer" build_preset tsan
  after "build with thread sanitizer" "tests with thread sanitizer" tsan_tests
  check "clang" clang_build
fi

echo
if ((${#failed[@]} > 0)); then
  printf -v names ', %s' "${failed[@]}"
  echo "check: FAILED: ${names:2}"
  exit 1
fi
echo "check: all passed"
