#!/usr/bin/env bash
# Makes a folder that runs `holdfast bench gpu` and the test suites of the GPU on a machine with an NVIDIA GPU that has neither
# LLVM nor a network: the programs, the libraries that they need beside those of the system, and a cache of kernels.
#   scripts/gpu_bundle.sh [--target sm_90] [FOLDER]         default: build/gpu-bundle
# There: FOLDER/run.sh, which prints what it measures and ends with status 0 when all is well.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=sm_90
if [[ ${1:-} == --target ]]; then
  target=$2
  shift 2
fi
folder=${1:-build/gpu-bundle}
bin=build/release/bin
rm -rf "$folder"
mkdir -p "$folder/lib" "$folder/cache"

programs=("$bin/holdfast")
for suite in ops metal; do
  [[ -x $bin/test-$suite ]] && programs+=("$bin/test-$suite")
done
for program in "${programs[@]}"; do
  cp "$program" "$folder/"
  strip "$folder/$(basename "$program")"
  # glibc and the driver are those of the machine.
  ldd "$program" | awk '$3 ~ "^/" {print $3}' | grep -vE '/(libc|libm|libmvec|libdl|libpthread|librt|libcuda|ld-linux[^/]*)\.so' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
done

# What the benchmark asks for, compiled for the GPU. On the CPU it computes little.
HOLDFAST_CACHE_DIR="$folder/cache" HOLDFAST_GPU=simulated "$bin/holdfast" kernel warm --target "$target" -- \
  "$bin/holdfast" bench gpu --quick >"$folder/warm.log" 2>&1 || {
  cat "$folder/warm.log" >&2
  exit 1
}

cat >"$folder/run.sh" <<'RUN'
#!/usr/bin/env bash
# holdfast on this machine's GPU. What it prints first is what it found there.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LD_LIBRARY_PATH=$here/lib HOLDFAST_GPU=cuda HOLDFAST_DEFAULT_DEVICE=gpu
cache=$(mktemp -d)
cp -r "$here/cache/." "$cache" && chmod -R go-rwx "$cache"
export HOLDFAST_CACHE_DIR=$cache
status=0
"$here/holdfast" info || status=1
"$here/holdfast" bench gpu || status=1
for suite in "$here"/test-*; do
  [[ -x $suite ]] || continue
  timeout 240 "$suite" || { echo "$(basename "$suite") failed"; status=1; }
done
rm -rf "$cache"
exit $status
RUN
chmod +x "$folder/run.sh"
du -sh "$folder"
