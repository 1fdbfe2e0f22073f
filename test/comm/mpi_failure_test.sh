#!/usr/bin/env bash
# One rank of three fails while the others wait for it: all end soon, with the exit status of the failure and a message
# that names the rank.
#
#     mpi_failure_test.sh MPIEXEC TEST_COMM_MPI
set -u
mpiexec=$1
program=$2

expect() {  # MODE STATUS MESSAGE: a status of "any" is any but 0
  local output status
  output=$(timeout 10 "$mpiexec" -n 3 --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 "$program" "$1" 2>&1)
  status=$?
  if [[ $status == 0 || $status == 124 || ($2 != any && $status != "$2") ]]; then
    echo "$1: exit status $status, expected $2: $output"
    exit 1
  fi
  if ! grep -qE "$3" <<<"$output"; then
    echo "$1: the message does not say '$3': $output"
    exit 1
  fi
}

expect throw 3 '^test_comm_mpi: rank 1: failed: no more disk space$'
expect check 1 '^test_comm_mpi: rank 1: bug: .*check failed: how'
expect kill any '[Rr]ank 1|,1\]'
