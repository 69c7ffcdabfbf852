#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh TOSAIC: the handwritten digits, from PyTorch's export to an int8 program that runs, with its accuracy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tosaic=$(realpath "${1:?usage: demo.sh PATH/TO/tosaic}")
out=${2:-build/demo}
mkdir -p "$out"
cd "$out"

show() { echo; echo "\$ tosaic $*"; "$tosaic" "$@"; }

cp "$here"/digits.pt2 "$here"/digits_samples.npz "$here"/digits_test.npz "$here"/digit.npy .
show compile digits.pt2 --target tosa-fp -o digits_fp.pte
show compile digits.pt2 --target tosa-int --calibrate digits_samples.npz -o digits.pte
show explain digits.pt2 --target tosa-int
show inspect digits.pte | sed -n '1,16p;17s/.*/  .../p'
show compile digits.pt2 --target ethos-u55-128 --calibrate digits_samples.npz -o digits_u55.pte
show compile digits.pt2 --target vgf --quantize int8 --calibrate digits_samples.npz -o digits_vgf.pte --emit vgf=digits.vgf
show compile digits.pt2 --target vulkan --quantize int8 --calibrate digits_samples.npz -o digits_vulkan.pte
mkdir -p one on_vulkan on_shaders
show run digits.pte --input digit.npy --output-dir one --repeat 200
show run digits_u55.pte --input digit.npy --output-dir one --repeat 200
show run digits_vgf.pte --device vulkan --input digit.npy --output-dir on_vulkan --repeat 20
show run digits_vgf.pte --device cpu --input digit.npy --output-dir one --repeat 200
cmp one/output_0.npy on_vulkan/output_0.npy
show run digits_vulkan.pte --input digit.npy --output-dir on_shaders --repeat 200
cmp one/output_0.npy on_shaders/output_0.npy
echo "  the Vulkan device and the CPU give the same bytes, by either of both files"
show run digits.vgf --device vulkan
show evaluate digits.pte --data digits_test.npz --float digits.pt2 --worst 3
show evaluate digits_u55.pte --data digits_test.npz
