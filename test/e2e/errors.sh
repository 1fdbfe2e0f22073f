#!/usr/bin/env bash
# What the commands say to bad input: all of it, and the exit status. Nothing may be left behind.
#
#     test/e2e/errors.sh BUILD_DIR
set -uo pipefail
# shellcheck source=test/e2e/common.sh
source "$(dirname "$0")/common.sh" "$1"

ffmodel mlp --batch 8 -o mlp.onnx >/dev/null 2>&1 || exit 1
ffmodel mlp -o free.onnx >/dev/null 2>&1 || exit 1
compile=(ffcompile --loss softmax-cross-entropy --cost roofline)

# Models.
echo "this is no model" >text.onnx
expect 2 "${compile[@]}" text.onnx <<<"ffcompile: error: text.onnx: not an ONNX file (17 bytes)"
head -c 1000 mlp.onnx >short.onnx
expect 2 "${compile[@]}" short.onnx \
  <<<"ffcompile: error: short.onnx: truncated ONNX file: it has 1000 bytes, its contents go on to byte 2679492"
expect 2 "${compile[@]}" missing.onnx <<<"ffcompile: error: missing.onnx: No such file or directory"
expect 2 "${compile[@]}" free.onnx <<'E'
ffcompile: error: free.onnx: input 'image': dimension 0 ('batch') has no size
hint: give the number of samples a step: --batch 32
E
{ value input x 4 3; value output y 4 3
  echo 'node { name: "first" op_type: "NonMaxSuppression" input: "x" output: "a" }'
  echo 'node { name: "second" op_type: "Relu" input: "a" output: "b" }'
  echo 'node { name: "third" op_type: "QLinearConv" input: "b" output: "c" }'
  echo 'node { name: "fourth" op_type: "NonMaxSuppression" input: "c" output: "y" }'; } | model unsupported.onnx 17
expect 2 "${compile[@]}" unsupported.onnx <<'E'
ffcompile: error: unsupported.onnx: 3 unsupported nodes:
  node 'first' (NonMaxSuppression): the shape of its result depends on the data
  node 'third' (QLinearConv): quantised integers are not trained
  node 'fourth' (NonMaxSuppression): the shape of its result depends on the data
hint: train up to a value before them with --output NAME
E
{ value input x 4 3; value output y 4 3
  echo 'node { name: "add" op_type: "Add" input: "x" input: "w" output: "y" }'
  echo 'initializer { name: "w" data_type: 1 dims: 4 dims: 3 data_location: EXTERNAL external_data { key: "location" value: "../outside.bin" } }'; } | model external.onnx 17
expect 2 "${compile[@]}" external.onnx <<'E'
ffcompile: error: external.onnx: initializer 'w': its external data '../outside.bin' is outside the model's folder
hint: put the data file beside the model
E
expect 2 ffcompile mlp.onnx --cost roofline <<'E'
ffcompile: error: no loss to train with
hint: name one: --loss softmax-cross-entropy, nll, bce, mse or graph
E
expect 2 ffcompile mlp.onnx --loss softmax --cost roofline <<'E'
ffcompile: error: --loss softmax: no loss 'softmax'
hint: one of softmax-cross-entropy, nll, bce, mse, graph
E
expect 2 ffcompile mlp.onnx --loss softmax-cross-entropy:nothing --cost roofline <<'E'
ffcompile: error: loss softmax-cross-entropy: the model has no output 'nothing'; it has 'logits'
E

# Machines and options.
expect 2 "${compile[@]}" mlp.onnx --machine cpu-3 <<'E'
ffcompile: error: machine 'cpu-3' is neither a preset nor a file; the nearest preset is 'cpu-1'
hint: ffcompile --list-presets prints all of them
E
cat >link.machine <<'E'
name: "m"
device_kind { name: "core" backend: CPU flops_f32: 5e10 memory_bandwidth: 1e10 memory: "1 GiB" }
node { name: "box" device { name: "cpu" kind: "core" count: 2 }
       link { name: "bus" from: "cpu0" to: "cpu7" bandwidth: 1e9 } }
E
expect 2 "${compile[@]}" mlp.onnx --machine link.machine <<'E'
ffcompile: error: link.machine: link 'bus' names device 'cpu7' of node kind 'box', which has devices cpu0..cpu1
hint: other endpoints: host, network
E
expect 2 "${compile[@]}" mlp.onnx --serch mcmc <<'E'
ffcompile: error: unknown option '--serch'
hint: did you mean '--search'?
E
expect 2 "${compile[@]}" mlp.onnx --machine cpu-2 --memory-limit lots <<'E'
ffcompile: error: --memory-limit: 'lots' is not a number of bytes
hint: write it as 4096, 512MiB or 12GiB
E
expect 2 "${compile[@]}" mlp.onnx --machine cpu-2 --memory-limit 1KiB --proposals 10 <<'E'
ffcompile: error: no strategy was found that fits the memory: the smallest peak is 3.4 MiB on device 'node0/cpu0', which may use 1.0 KiB
hint: use a smaller --batch, more devices or a larger --memory-limit
E
echo 'default { devices: "0" }' >first.strategy
expect 2 "${compile[@]}" mlp.onnx --machine cpu-2 --memory-limit 4MiB --strategy first.strategy <<'E'
ffcompile: error: first.strategy: does not fit the memory: it takes 6.7 MiB on the fullest device
hint: split it further, or give a larger --memory-limit
E
expect 2 "${compile[@]}" mlp.onnx --emit task-graph <<'E'
ffcompile: error: --emit task-graph: no such choice
hint: did you mean 'graph'?
E
expect 2 "${compile[@]}" mlp.onnx --machine cpu-2 --explain fc11 <<'E'
ffcompile: error: --explain fc11: no such op; close are 'fc1', 'fc2', 'fc3'
hint: ffplan-dump PLAN.soap and --emit strategy list the ops
E
expect 2 "${compile[@]}" mlp.onnx --machine cpu-2 --explain fc1/b_grad <<'E'
ffcompile: error: --explain fc1/b_grad: it is split as 'fc1' is
hint: give --explain fc1
E
expect 2 "${compile[@]}" mlp.onnx --machine cpu-2 --explain fc1 --emit graph <<'E'
ffcompile: error: --explain needs a strategy, and --emit graph stops before there is one
hint: --emit strategy stops when there is one, and writes no plan
E
expect 2 "${compile[@]}" mlp.onnx --device cuda <<'E'
ffcompile: error: --device cuda: this build has no CUDA kernels
hint: use --cost roofline, or --device cpu
E
[[ -z $(ls ./*.soap* 2>/dev/null) ]] || fail "a refused compile left $(ls ./*.soap*)"
"${compile[@]}" mlp.onnx --machine cpu-4 --search data-parallel -o four.soap >/dev/null 2>&1 || fail "compile"
ffplan-dump four.soap --strategy >four.strategy || fail "ffplan-dump --strategy"
expect 2 "${compile[@]}" mlp.onnx --machine cpu-4 --batch 2 --strategy four.strategy -o small.soap <<'E'
note: input 'image': the fixed batch 8 becomes 2
ffcompile: error: four.strategy: op 'flatten_1' (Reshape): dimension g0 (size 2) cannot be split by 4: its largest degree is 2
E

# Plans.
"${compile[@]}" mlp.onnx --machine cpu-2 --proposals 20 -o two.soap >/dev/null 2>&1 || fail "compile"
"${compile[@]}" mlp.onnx --machine cpu-1 --proposals 0 -o one.soap >/dev/null 2>&1 || fail "compile"
expect 2 ffrun two.soap --synthetic <<'E'
ffrun: error: two.soap: world is 1, plan needs 2
hint: run it as: mpirun -n 2 ffrun two.soap ...
E
for variable in SLURM_NTASKS PMI_SIZE; do
  expect 2 env "$variable=2" ffrun two.soap --synthetic <<'E'
ffrun: error: two.soap: world is 1, plan needs 2, launcher says 2
hint: run it as: mpirun -n 2 ffrun two.soap ...
E
done
printf 'no plan at all, really' >text.soap
expect 2 ffrun text.soap --synthetic <<'E'
ffrun: error: text.soap: not a plan file
hint: ffcompile MODEL.onnx --machine MACHINE makes one
E
expect 2 ffplan-dump text.soap <<'E'
ffplan-dump: error: text.soap: not a plan file
hint: ffcompile MODEL.onnx --machine MACHINE makes one
E
ffmodel lenet5 --batch 8 -o other.onnx >/dev/null 2>&1 || exit 1
"${compile[@]}" other.onnx --machine cpu-1 --proposals 0 >/dev/null 2>&1 || fail "compile"
hash_of() { ffplan-dump "$1" | sed -n 's/^model .*(\(.*\))/\1/p'; }
expect 2 ffplan-dump one.soap --diff other.soap <<E
ffplan-dump: error: --diff other.soap: a plan of another model: other.onnx ($(hash_of other.soap)); that of one.soap is mlp.onnx ($(hash_of one.soap))
hint: compile both plans from the same ONNX file
E
expect 2 ffplan-dump one.soap --diff two.soap --strategy <<'E'
ffplan-dump: error: give one of the options that choose what to show
E
cp one.soap flipped.soap
printf '\xff' | dd of=flipped.soap bs=1 seek=$(($(stat -c %s flipped.soap) / 2)) conv=notrunc status=none
expect 2 ffrun flipped.soap --synthetic <<'E'
ffrun: error: flipped.soap: section 'program 0' is damaged: its checksum does not match
hint: compile the model again with ffcompile
E
cp one.soap version.soap
printf '\x02' | dd of=version.soap bs=1 seek=8 conv=notrunc status=none
expect 2 ffrun version.soap --synthetic <<'E'
ffrun: error: version.soap: plan format 2.0; this ffrun reads 1.x
hint: compile the model again with the ffcompile of this version
E
cp mlp.onnx keep.onnx
printf 'x' | dd of=mlp.onnx bs=1 seek=100000 conv=notrunc status=none
expect 2 ffrun one.soap --synthetic --steps 1 <<'E'
ffrun: error: mlp.onnx: changed since one.soap was compiled
hint: compile it again: ffcompile mlp.onnx
E
cp keep.onnx mlp.onnx

# Data: npy SHAPE TYPE BYTES makes an array of zeros.
npy() {
  local header="{'descr': '$2', 'fortran_order': False, 'shape': $1, }"
  printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$header"
  head -c "$3" /dev/zero
}
npy '(8, 1, 28, 28)' '<f4' 25088 >image.npy
npy '(8,)' '<i8' 64 >labels.npy
npy '(8, 783)' '<f4' 25056 >shape.npy
npy '(8, 784)' '<c8' 50176 >type.npy
npy '(8,)' '<f4' 32 >real-labels.npy
printf 'not a data file' >bad.npy
expect 2 ffrun one.soap --data image=bad.npy --data labels=labels.npy <<'E'
ffrun: error: bad.npy: neither a NumPy .npy nor an IDX file
hint: convert it with numpy.save
E
expect 2 ffrun one.soap --data image=nothing.npy --data labels=labels.npy <<'E'
ffrun: error: nothing.npy: cannot be opened: No such file or directory
E
expect 2 ffrun one.soap --data image=shape.npy --data labels=labels.npy <<'E'
ffrun: error: input 'image' is 8x1x28x28 (batch on axis 0), a sample of it 1x28x28, but shape.npy is 8x783, a sample of it 783
hint: axis 0 of a file is samples; the others must be the input's, axes of size 1 aside
E
expect 2 ffrun one.soap --data image=type.npy --data labels=labels.npy <<'E'
ffrun: error: type.npy: elements of type '<c8' are not read
hint: save it as float32, float64, bool or an integer type
E
expect 2 ffrun one.soap --data image=image.npy --data labels=real-labels.npy <<'E'
ffrun: error: input 'labels' is i64, real-labels.npy is float32: floats do not become integers
hint: save it as integers: array.astype('int64')
E
expect 2 ffrun one.soap --steps 1 <<'E'
ffrun: error: input 'image' has no data
hint: give --data image=FILE, or --synthetic for made-up numbers

E

# An index that an embedding has no row for: sample 2 asks for row 12 of 11. numbers SHAPE NUMBER... makes an array of int64.
numbers() {
  local number
  npy "$1" '<i8' 0
  shift
  for number in "$@"; do printf '%b\0\0\0\0\0\0\0' "\\x$(printf %02x "$number")"; done
}
{ value input image 6 4 | sed 's/elem_type: 1/elem_type: 7/'; value output y 6 8; weight w 11 2
  echo 'node { name: "embedding" op_type: "Gather" input: "w" input: "image" output: "e" }'
  echo 'node { name: "flat" op_type: "Flatten" input: "e" output: "y" }'; } | model words.onnx 17
"${compile[@]}" words.onnx --machine cpu-1 --proposals 0 -o words.soap >/dev/null 2>&1 || fail "compile"
numbers '(6, 4)' 0 1 2 3 4 5 6 7 8 9 10 12 1 1 1 1 2 2 2 2 3 3 3 3 >tokens.npy
numbers '(6,)' 0 1 2 3 4 8 >classes.npy
expect 2 ffrun words.soap --data image=tokens.npy --data labels=classes.npy --quiet <<'E'
ffrun: error: rank 0: instruction #0 (Gather embedding): index 12 of sample 2 is outside [-11, 11)
hint: check the data that the indices come from: there are 11 entries to choose from
E
expect 2 ffrun words.soap --synthetic --data labels=classes.npy --quiet <<'E'
ffrun: error: rank 0: instruction #2 (SoftmaxCrossEntropy loss): label 8 of sample 5 is outside [0, 8)
hint: check the labels; one that marks no class can be given as the index to ignore
E

# A rank that is killed takes the others with it, and mpirun says which it was.
ffmodel mlp --batch 8 -o long.onnx >/dev/null 2>&1
"${compile[@]}" long.onnx --machine cpu-2 --search data-parallel -o long.soap >/dev/null 2>&1 || fail "compile"
trainers() {  # the numbers of the processes that train it
  local file
  for file in /proc/[0-9]*/cmdline; do
    if tr '\0' ' ' <"$file" 2>/dev/null | grep -q "^ffrun $work/long.soap"; then basename "$(dirname "$file")"; fi
  done
}
start 2 ffrun "$work/long.soap" --synthetic --steps 100000000 --quiet >killed.txt 2>&1 &
launcher=$!
victim=
for ((i = 0; i < 100 && ${#victim} == 0; i++)); do
  sleep 0.1
  for pid in $(trainers); do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx OMPI_COMM_WORLD_RANK=1; then victim=$pid; fi
  done
done
sleep 0.5
kill -KILL "$victim"
killed=$SECONDS
wait "$launcher"
status=$?
((status != 0)) || fail "a killed rank: mpirun ended with status 0"
((SECONDS - killed <= 10)) || fail "a killed rank: the others ended after $((SECONDS - killed)) s"
grep -q 'rank 1 ' killed.txt || { fail "a killed rank is not named:"; cat killed.txt; }
sleep 0.2
[[ -z $(trainers) ]] || fail "a killed rank left others running"

finish errors
