#!/usr/bin/env bash
# Fails on an include between rooms that tools/layering.txt does not allow, naming file, line and edge:
#
#     compiler/graph/graph.cc:7: compiler/graph may not include compiler/search ("compiler/search/mcmc.h")
#
#     tools/check-layering.sh [ROOT]        checks the tree at ROOT (default: this one)
#     tools/check-layering.sh --self-test   makes trees with a forbidden include each, and expects to fail on them
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

sources() {
  find compiler executor profiles models tools -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null | LC_ALL=C sort
}

check() (
  cd "$1"
  mapfile -t files < <(sources | while IFS= read -r file; do
    grep -qE '^[[:space:]]*int[[:space:]]+main[[:space:]]*\(' "$file" || printf '%s\n' "$file"
  done)
  if ((${#files[@]} == 0)); then
    echo "check-layering: no sources under $1" >&2
    return 1
  fi
  awk '
    # The first file is the list of edges.
    NR == FNR {
      sub(/#.*/, "")
      if (NF == 0) next
      room = $1; sub(/:$/, "", room)
      rooms[room] = 1; may[room, room] = 1
      for (i = 2; i <= NF; i++) { may[room, $i] = 1; named[$i] = room }
      next
    }
    FNR == 1 {
      if (!closed) close_edges()
      from = room_of(FILENAME)
      if (from == "") fail(FILENAME ":1: in no room of tools/layering.txt")
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
      quoted = ($0 ~ /include[ \t]*"/)
      path = $0
      sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", path); sub(/[">].*/, "", path)
      if (!quoted && path !~ /^(compiler|executor|profiles|models|tools|test)\//) next
      to = room_of(path)
      if (to == "") fail(FILENAME ":" FNR ": \"" path "\" is in no room (ours from the root, others in <>)")
      else if (from != "" && !((from, to) in may)) fail(FILENAME ":" FNR ": " from " may not include " to " (\"" path "\")")
    }
    END {
      if (failures) exit 1
      printf "check-layering: %d files, every include is allowed\n", ARGC - 2
    }
    function fail(message) { print message; failures++ }
    function room_of(path) {
      while (sub(/\/[^\/]*$/, "", path)) if (path in rooms) return path
      return ""
    }
    function close_edges(   a, b, c) {
      closed = 1
      for (a in named) if (!(a in rooms)) fail("tools/layering.txt: " named[a] " names " a ", which is no room")
      for (b in rooms) for (a in rooms) if ((a, b) in may) for (c in rooms) if ((b, c) in may) may[a, c] = 1
    }
  ' "$here/layering.txt" "${files[@]}"
)

# expect STATUS TEXT FILE LINE...: the check of a tree with that one file exits so and says TEXT.
expect() {
  local status=$1 text=$2 file=$3 got=0 said
  shift 3
  rm -rf "${scratch:?}/tree"
  mkdir -p "$scratch/tree/$(dirname "$file")"
  printf '%s\n' "$@" >"$scratch/tree/$file"
  said=$(check "$scratch/tree" 2>&1) || got=$?
  if [[ $got != "$status" || $said != *"$text"* ]]; then
    printf 'check-layering --self-test: %s with "%s":\n  expected status %s and "%s"\n  got status %s and "%s"\n' \
      "$file" "$*" "$status" "$text" "$got" "$said"
    return 1
  fi
}

self_test() {
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  expect 1 'compiler/graph/a.cc:2: compiler/graph may not include compiler/search' \
    compiler/graph/a.cc '#include <vector>' '#include "compiler/search/mcmc.h"'
  expect 1 'executor/runtime may not include compiler/graph' executor/runtime/a.h '#include "compiler/graph/graph.h"'
  expect 1 'compiler/plan may not include executor/kernels/cpu' compiler/plan/a.cc '#include <executor/kernels/cpu/gemm.h>'
  expect 1 'models may not include compiler/machine' models/zoo/a.cc '#  include "compiler/machine/machine.pb.h"'
  expect 1 'is in no room' compiler/base/a.cc '#include "box.h"'
  expect 1 'in no room' compiler/stray.cc '#include <vector>'
  expect 0 'every include is allowed' compiler/search/a.cc '#include "compiler/base/box.h"' '#include "compiler/plan/plan.pb.h"'
  expect 1 'no sources' compiler/main.cc '#include "compiler/search/mcmc.h"' 'int main(int argc, char** argv) { return 0; }'
  echo "check-layering --self-test: passed"
}

case ${1-} in
  --self-test) self_test ;;
  -*) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  *) check "${1:-$here/..}" ;;
esac
