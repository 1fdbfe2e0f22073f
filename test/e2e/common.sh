# shellcheck shell=bash
# Sourced by the scripts of this folder, with BUILD_DIR as their first argument: a scratch folder to work in, the commands in PATH,
# what fails is counted in $failures.
bin=$(cd "$1/bin" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OMPI_COMM_WORLD_SIZE PMI_SIZE PMIX_RANK SLURM_NTASKS SLURM_STEP_NUM_TASKS
PATH=$bin:$PATH
failures=0

fail() { printf 'FAILED: %s\n' "$*"; failures=$((failures + 1)); }

# expect STATUS COMMAND... <<MESSAGE: what the command prints, whole.
expect() {
  local status=$1 wanted output got
  shift
  wanted=$(cat)
  output=$(timeout 60 "$@" 2>&1 </dev/null)
  got=$?
  if [[ $got -ne $status || $output != "$wanted" ]]; then
    fail "$*"
    printf '  expected status %s and:\n%s\n  got status %s and:\n%s\n' "$status" "$wanted" "$got" "$output"
  else
    printf 'ok: %s\n' "$*"
  fi
}

# model FILE OPSET: an ONNX file of a graph written as protobuf text on standard input.
model() {
  { printf 'ir_version: 8 opset_import { version: %s } graph { name: "g"\n' "$2"; cat; printf '}\n'; } |
    protoc -I /usr/include --encode=onnx.ModelProto onnx/onnx.proto >"$1" || exit 1
}

# value input|output NAME SIZE...: of f32.
value() {
  local kind=$1 name=$2 size
  shift 2
  printf '%s { name: "%s" type { tensor_type { elem_type: 1 shape { ' "$kind" "$name"
  for size in "$@"; do printf 'dim { dim_value: %s } ' "$size"; done
  printf '} } } }\n'
}

# weight NAME SIZE...: an initializer of f32.
weight() {
  local name=$1 size elements=1 i
  shift
  printf 'initializer { name: "%s" data_type: 1 ' "$name"
  for size in "$@"; do printf 'dims: %s ' "$size"; elements=$((elements * size)); done
  for ((i = 0; i < elements; i++)); do printf 'float_data: 0.%d ' $((1 + i * 7 % 9)); done
  printf '}\n'
}

# start N COMMAND...: under mpirun, cores shared.
start() {
  local ranks=$1
  shift
  timeout 100 mpirun -n "$ranks" --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$@"
}

finish() {  # finish NAME
  ((failures == 0)) && echo "$1: all as expected"
  exit $((failures != 0))
}
