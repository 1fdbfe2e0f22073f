#!/usr/bin/env bash
# Several hosts on one machine: network namespaces joined by a bridge, each link shaped, Open MPI launched across them
# without ssh. Needs root, iproute2 and a kernel with htb. For measuring plans on a slow network; not a part of ctest.
#
#     test/network/netns.sh up N RATE          N hosts; RATE as tc spells it (1gbit, 100mbit), or "none" for no shaping
#     test/network/netns.sh mpirun N CMD...    CMD on hosts 1..N, one rank a host, each on a core of its own if there are enough
#     test/network/netns.sh run N RATE CMD...  up, mpirun, down; also down if it fails or is interrupted
#     test/network/netns.sh down               takes the hosts away
#     test/network/netns.sh self-test          64 MB both ways between two hosts at 1gbit, compared with what 1 Gbit/s allows
#
# Host I is the namespace ffhost I with the address 10.77.0.I; the bridge is in the namespace ffswitch.
set -euo pipefail
script=$(readlink -f "$0")
here=$(dirname "$script")
switch=ffswitch

fail() { echo "netns: $*" >&2; exit 3; }

host_count() { ip netns list | grep -c '^ffhost[0-9]' || true; }

down() {
  local name pid
  for name in $(ip netns list | awk '$1 ~ /^ffhost[0-9]+$/ || $1 == "ffswitch" {print $1}'); do
    for pid in $(ip netns pids "$name"); do kill "$pid" 2>/dev/null || true; done
    ip netns delete "$name"
  done
}

add_host() {  # add_host I RATE
  local host=ffhost$1 rate=$2
  ip netns add "$host"
  ip -n "$host" link set lo up
  ip link add eth0 netns "$host" type veth peer name "port$1" netns "$switch"
  ip -n "$switch" link set "port$1" master bridge0 up
  ip -n "$host" address add "10.77.0.$1/24" dev eth0
  ip -n "$host" link set eth0 up
  if [[ $rate != none ]]; then
    ip netns exec "$host" tc qdisc add dev eth0 root handle 1: htb default 10
    ip netns exec "$host" tc class add dev eth0 parent 1: classid 1:10 htb \
      rate "$rate" burst 64kb cburst 64kb quantum 60000
  fi
}

up() {  # up N RATE
  local i
  if [[ ! $1 =~ ^[0-9]+$ ]] || (($1 < 1 || $1 > 250)); then fail "the number of hosts is '$1', not 1 to 250"; fi
  if (($(host_count) > 0)); then fail "hosts are up already: $script down"; fi
  trap down ERR
  ip netns add "$switch"
  ip -n "$switch" link set lo up
  ip -n "$switch" link add bridge0 type bridge
  ip -n "$switch" link set bridge0 up
  for ((i = 1; i <= $1; i++)); do add_host "$i" "$2"; done
  trap - ERR
  echo "netns: $1 hosts up, $2 each" >&2
}

# The launch agent of mpirun: options, the address of a host, then the command of its daemon.
agent() {
  local number core
  while [[ ${1-} == -* ]]; do shift; done
  number=${1##*.}
  shift
  core=$(((number - 1) % $(nproc --all)))  # of all: the agent inherits the first host's core
  exec ip netns exec "ffhost$number" taskset -c "$core" unshare --uts bash -c "hostname ffhost$number; $*"
}

# btl_tcp_flags 1 (messages are sent, not put): with puts, Open MPI 4.1 keeps one direction of a large exchange waiting
# for the other, and both take twice as long as the link allows.
mpi_across() {  # mpi_across N CMD...
  local hosts=$1 i status=0 scratch
  shift
  (($(host_count) >= hosts)) || fail "$(host_count) hosts are up, $hosts are needed: $script up $hosts RATE"
  scratch=$(mktemp -d)
  for ((i = 1; i <= hosts; i++)); do echo "10.77.0.$i slots=1" >>"$scratch/hostfile"; done
  printf '#!/bin/sh\nexec "%s" agent "$@"\n' "$script" >"$scratch/agent"
  chmod +x "$scratch/agent"
  local -x OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  local -x OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} OMP_WAIT_POLICY=passive
  ip netns exec ffhost1 unshare --uts bash -c 'hostname ffhost1; exec "$@"' mpirun \
    taskset -c 0 mpirun -n "$hosts" --hostfile "$scratch/hostfile" --mca plm_rsh_agent "$scratch/agent" \
    --mca btl tcp,self --mca btl_tcp_flags 1 --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
    --mca mpi_yield_when_idle 1 --bind-to none "$@" || status=$?
  rm -rf "$scratch"
  return "$status"
}

self_test() {
  local rate
  scratch=$(mktemp -d)
  trap 'down; rm -rf "$scratch"' EXIT
  mpicc -O2 -o "$scratch/sendrecv" "$here/sendrecv.c"
  up 2 1gbit
  rate=$(mpi_across 2 "$scratch/sendrecv")
  echo "netns: 64 MB both ways at once: $rate GB/s a direction; 1 Gbit/s is 0.125"
  awk -v rate="$rate" 'BEGIN { exit !(rate > 0.1 && rate < 0.13) }' || fail "expected between 0.100 and 0.130"
}

command=${1-}
if (($# > 0)); then shift; fi
case $command in
  up | down | mpirun | run | self-test)
    ((EUID == 0)) || fail "network namespaces need root"
    for tool in ip tc mpirun; do command -v "$tool" >/dev/null || fail "no '$tool' here: tools/install-deps.sh --dev"; done ;;&
  up) (($# == 2)) || fail "up N RATE"; up "$@" ;;
  down) down ;;
  mpirun) (($# >= 2)) || fail "mpirun N CMD..."; mpi_across "$@" ;;
  run)
    (($# >= 3)) || fail "run N RATE CMD..."
    trap down EXIT
    trap 'exit 130' INT TERM
    up "$1" "$2"
    hosts=$1
    shift 2
    mpi_across "$hosts" "$@" ;;
  self-test) self_test ;;
  agent) agent "$@" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$script" >&2; exit 2 ;;
esac
