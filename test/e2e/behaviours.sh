#!/usr/bin/env bash
# What people report of other systems, and how this one behaves: uneven parts, searches without a budget, machines that are
# not there, statistics and integers that must not be trained.
#
#     test/e2e/behaviours.sh BUILD_DIR
set -uo pipefail
# shellcheck source=test/e2e/common.sh
source "$(dirname "$0")/common.sh" "$1"
compile=(ffcompile --loss softmax-cross-entropy --cost roofline)

# holds WHAT COMMAND...: the command succeeds.
holds() {
  local what=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then printf 'ok: %s\n' "$what"; else fail "$what: $*"; printf '%s\n' "$output"; fi
}
# says WHAT TEXT COMMAND...: it succeeds, and a line of its output has the text.
says() {
  local what=$1 text=$2 output
  shift 2
  if output=$("$@" 2>&1 </dev/null) && grep -qF -- "$text" <<<"$output"; then
    printf 'ok: %s\n' "$what"
  else
    fail "$what: '$text' in: $*"
    printf '%s\n' "$output"
  fi
}

# A batch of 50 on 8 devices: parts differ by one at most, none of a single sample, and batch normalisation trains on.
ffmodel residual-bn --batch 50 -o bn50.onnx >/dev/null 2>&1
holds "50 samples on 8 devices compile" "${compile[@]}" bn50.onnx --machine cpu-4:devices=8 --search data-parallel
# Part I of 8 begins at sample floor(50 I / 8).
parts=$(for rank in 0 1 2 3 4 5 6 7; do
  ffplan-dump bn50.soap --program $rank | sed -n 's/.* \[\([0-9]*\):\([0-9]*\),0:3,.* input image$/\1 \2/p' | head -n 1
done | awk '{ printf "%s%d", (NR > 1 ? "," : ""), $2 - $1 }')
[[ $parts == 6,6,6,7,6,6,6,7 ]] || fail "50 samples on 8 devices are parts of $parts"
holds "they train as one device does" start 8 ffrun bn50.soap --synthetic --steps 2 --verify --quiet

# A linear layer of 10 over 6 devices, of 6 over 4: trained, saved and read again, whatever the sizes of the parts.
linear() { value input x 4 16; value output y 4 "$1"; weight w 16 "$1"
  echo 'node { name: "linear" op_type: "MatMul" input: ["x", "w"] output: "y" }'; }
uneven() {  # uneven SIZE DEVICES
  linear "$1" | model "linear$1.onnx" 17
  printf 'op { name: "linear" degree { dim: "n" by: %d } devices: "0-%d" } default { devices: "0" }\n' "$2" "$(($2 - 1))" >"linear$1.strategy"
  holds "$1 columns over $2 devices compile" "${compile[@]}" "linear$1.onnx" --machine "cpu-4:devices=$2" --strategy "linear$1.strategy"
  holds "they train as one device does" start "$2" ffrun "linear$1.soap" --synthetic --steps 2 --verify --quiet --checkpoint "kept$1"
  holds "they go on from a checkpoint" start "$2" ffrun "linear$1.soap" --synthetic --steps 4 --verify --quiet --checkpoint "kept$1" --resume
}
uneven 10 6
uneven 6 4
linear 2 | model linear2.onnx 17
echo 'op { name: "linear" degree { dim: "n" by: 4 } devices: "0-3" } default { devices: "0" }' >linear2.strategy
expect 2 "${compile[@]}" linear2.onnx --machine cpu-4 --strategy linear2.strategy <<'E'
ffcompile: error: linear2.strategy: op 'linear' (MatMul): dimension n (size 2) cannot be split by 4: its largest degree is 2
E

# A width that 3 devices do not divide: some plan, that trains.
ffmodel mlp --batch 8 -o mlp.onnx >/dev/null 2>&1
holds "a width of 512 on 3 devices compiles" "${compile[@]}" mlp.onnx --machine cpu-4:devices=3 --proposals 50 -o three.soap
holds "it trains" start 3 ffrun three.soap --synthetic --steps 2 --verify --quiet

# A search without a budget gives a valid plan with its predicted time, from the baselines or from a given strategy.
says "no proposals, no strategy" "predicted step" "${compile[@]}" mlp.onnx --machine cpu-2 --proposals 0 -o zero.soap
ffplan-dump zero.soap --strategy >zero.strategy
says "no proposals, a strategy to start from" "predicted step" "${compile[@]}" mlp.onnx --machine cpu-2 --budget 0 --init zero.strategy -o zero.soap
holds "it trains" start 2 ffrun zero.soap --synthetic --steps 2 --verify --quiet

# 3 of 4 devices at work in a layer: the fourth is shown to be idle, and gradients are not scaled by its absence.
printf 'op { name: "%s" degree { dim: "n" by: 3 } devices: "0-2" } default { devices: "0" }\n' linear >idle.strategy
holds "a strategy for 3 of 4 devices" "${compile[@]}" linear10.onnx --machine cpu-4 --strategy idle.strategy -o idle.soap
says "the fourth is idle" "idle: 3" ffplan-dump idle.soap
holds "it trains as one device does" start 4 ffrun idle.soap --synthetic --steps 2 --verify --quiet

# Why an op is where it is, of a strategy that is given, without a plan. A kernel takes 1 us on this machine, whatever its size, a
# message of b bytes 100 + b ns. All on device 0: the two ops and the loss end at 3 us. With a second one on device 1 too, y (800
# bytes) is there at 1.9 us and done with at 2.9, beside the loss.
cat >two.machine <<'E'
name: "two"
device_kind { name: "core" backend: CPU flops_f32: 1e15 memory_bandwidth: 1e15 memory: "1 GiB" kernel_launch_ns: 1000 }
node { name: "box" device { name: "cpu" kind: "core" count: 2 }
       link { name: "bus" from: "cpu0" to: "cpu1" bandwidth: 1e9 latency_ns: 100 } }
E
{ value input x 2 100; value output z 2 100
  echo 'node { name: "first" op_type: "Sigmoid" input: "x" output: "y" }'
  echo 'node { name: "second" op_type: "Sigmoid" input: "y" output: "z" }'; } | model chain.onnx 17
echo 'default { devices: "0" }' >zero.strategy
explain=(ffcompile chain.onnx --loss mse --machine two.machine --strategy zero.strategy --cost roofline --explain second)
says "why an op is where it is" \
  "replicas:2 on 0-1 takes as long as whole on 0; it sends 800 B more and keeps the busiest link 900 ns longer." "${explain[@]}"
[[ ! -e chain.soap ]] || fail "an explanation of a strategy wrote a plan"
"${explain[@]}" --emit strategy >explained.strategy 2>/dev/null
ffcompile chain.onnx --loss mse --machine two.machine --strategy zero.strategy --cost roofline --emit strategy >plain.strategy
holds "an explanation beside a strategy is not on standard output" cmp explained.strategy plain.strategy
says "a plan is written if it is asked for" "predicted step 3.0 us" "${explain[@]}" -o chain.soap
says "a plan differs from itself in no op" "no op differs" ffplan-dump chain.soap --diff chain.soap

# A profile of one device, a machine of 16: no device is needed, and the costs say where they come from.
holds "a profile is made" ffcompile linear6.onnx --loss softmax-cross-entropy --machine cpu-1 --profile one.profile
says "a profile for a larger machine" "kernels as measured, of" ffcompile linear6.onnx --loss softmax-cross-entropy \
  --machine cpu-4:devices=16 --cost profile --profile one.profile --proposals 5 -o sixteen.soap

# Batch normalisation: what is trained, and which statistics are used, by the mode in the file.
norm() {  # norm OUTPUTS ATTRIBUTES
  value input x 8 4 3 3; value output y 8 4; weight scale 4; weight bias 4; weight mean 4; weight var 4
  printf 'node { name: "norm" op_type: "BatchNormalization" input: ["x", "scale", "bias", "mean", "var"] output: [%s] %s }\n' "$1" "$2"
  echo 'node { op_type: "GlobalAveragePool" input: "n" output: "p" } node { op_type: "Flatten" input: "p" output: "y" }'
}
norm '"n", "m", "v"' 'attribute { name: "training_mode" type: INT i: 1 }' | model training.onnx 17
norm '"n"' '' | model inference.onnx 17
norm '"n"' '' | model old.onnx 9
for net in training inference old; do
  holds "batch normalisation, $net" "${compile[@]}" $net.onnx
done
says "in training mode" "norm/running  BatchNormRunning" ffplan-dump training.soap
for net in inference old; do
  says "$net: with frozen statistics" "BatchNormInference" ffplan-dump $net.soap
  says "$net: which is said" "statistics are frozen (training_mode 0), scale and bias are trained" "${compile[@]}" $net.onnx
  says "$net: and can be changed" "norm/running" "${compile[@]}" $net.onnx --batchnorm-mode train --emit training-graph
done
says "statistics of each device's samples" "groups=2} : f32[8x4x3x3] last : f32[2x4] : f32[2x4]" \
  "${compile[@]}" training.onnx --machine cpu-2 --batchnorm local --emit training-graph
expect 2 "${compile[@]}" training.onnx --machine cpu-4:devices=3 --batchnorm local <<'E'
ffcompile: error: node 'norm': a batch of 8 makes no 3 groups of equal size
hint: --batchnorm local takes a --batch that is a multiple of the number of devices
E
expect 0 "${compile[@]}" training.onnx --dry-run <<'E'
model training.onnx, batch 8
inputs:
  x: f32[8x4x3x3]
outputs:
  y: f32[8x4]
trained parameters (8 elements):
  scale: f32[4]
  bias: f32[4]
state (8 elements):
  mean: f32[4]
  var: f32[4]
E

# Integers are not trained, and an initializer that is listed as an input is no data.
{ value input x 4 6; value input w 6 3; value output y 4 3; weight w 6 3
  echo 'initializer { name: "shape" data_type: 7 dims: 2 int64_data: [-1, 6] }'
  echo 'node { op_type: "Reshape" input: ["x", "shape"] output: "r" }'
  echo 'node { op_type: "MatMul" input: ["r", "w"] output: "y" }'; } | model listed.onnx 17
expect 0 "${compile[@]}" listed.onnx --dry-run <<'E'
model listed.onnx, batch 4
inputs:
  x: f32[4x6]
outputs:
  y: f32[4x3]
trained parameters (18 elements):
  w: f32[6x3]
E
{ value input x 4 6; value output y 4 3
  echo 'initializer { name: "w" data_type: 3 dims: 6 dims: 3 int32_data: [1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9] }'
  echo 'node { name: "product" op_type: "MatMulInteger" input: ["x", "w"] output: "y" }'; } | model int8.onnx 17
expect 2 "${compile[@]}" int8.onnx <<'E'
ffcompile: error: int8.onnx: 1 unsupported node:
  node 'product' (MatMulInteger): quantised integers are not trained
hint: train up to a value before them with --output NAME

E

finish behaviours
