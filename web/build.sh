#!/usr/bin/env bash
# Build web/dist/micronet.wasm from the native engine's sources. Needs, on Debian 12:
#
#   apt install clang-14 lld-14 wasi-libc libc++-14-dev-wasm32 libc++abi-14-dev-wasm32 libclang-rt-14-dev-wasm32 binaryen
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=${WASM_CXX:-clang++-14}
for tool in "$compiler" wasm-opt; do
  command -v "$tool" >/dev/null || {
    echo "make web needs $tool: apt install $(sed -n 's/^# *apt install //p' web/build.sh)" >&2
    exit 1
  }
done
objects=build/web
mkdir -p "$objects" web/dist
launcher=$(command -v ccache || true)
flags=(--target=wasm32-wasi -std=c++17 -Wall -Wextra -Werror -msimd128 -mbulk-memory -fwasm-exceptions
  -fno-rtti -fno-threadsafe-statics -ffp-contract=off -fmerge-all-constants -fvisibility=hidden -ffunction-sections -fdata-sections
  -DMICRONET_SIMD128 -DMICRONET_WITHOUT_RECOLLECTIONS -DNDEBUG -Inative/include -Inative/src)

# Kernels of other processors are left out. Two files at a time; where one fails, its object is missing below.
rm -f "$objects"/*.o
for source in native/src/*.cpp web/native/*.cpp; do
  name=$(basename "$source" .cpp)
  case $name in
    kernels_wasm) ;;
    kernels_*) continue ;;
  esac
  object=$objects/$name.o
  built+=("$object")
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
  $launcher "$compiler" "${flags[@]}" -Oz -c "$source" -o "$object" &
done
wait

# The functions of the C API that the JavaScript calls.
exports=$(grep -ohE '"mn_[a-z_]+"' web/src/*.js | tr -d '"' | sort -u)
"$compiler" --target=wasm32-wasi -nostartfiles "${built[@]}" -o "$objects/micronet.wasm" \
  -Wl,--no-entry,--gc-sections,--strip-all,--stack-first,-z,stack-size=1048576 \
  -Wl,--export=malloc,--export=free,--export=__wasm_call_ctors \
  $(printf -- '-Wl,--export=%s ' $exports)
# Functions with one caller stay functions (-ocimfs): more bytes, but 2 % fewer as Brotli.
wasm-opt -Oz --converge -ocimfs 4 --low-memory-unused --enable-simd --enable-exception-handling --enable-bulk-memory --enable-nontrapping-float-to-int \
  --enable-sign-ext --enable-mutable-globals "$objects/micronet.wasm" -o "$objects/optimized.wasm"
mv "$objects/optimized.wasm" web/dist/micronet.wasm
python3 web/sources.py --write
ls -l web/dist/micronet.wasm
