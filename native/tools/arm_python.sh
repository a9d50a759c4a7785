#!/bin/sh
# An environment of 64-bit ARM on another processor, for tests under qemu: Debian's Python, packages from PyPI and
# the engine, cross-compiled. Nothing is installed: all of it lies in FOLDER, and FOLDER/python runs it.
#
#   apt install g++-aarch64-linux-gnu qemu-user
#   native/tools/arm_python.sh FOLDER [PYTHON]    PYTHON: one with pip and nanobind, of the same version (3.11)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
python=${2:-python3.11}
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
system=$folder/root

if [ ! -x "$system/usr/bin/python$version" ]; then
  # Lists and cache of its own, so that this machine's packages stay as they are.
  lists=$folder/apt
  mkdir -p "$lists/lists/partial" "$lists/archives/partial" "$folder/packages"
  : > "$lists/status"
  apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$lists" -o Dir::Cache="$lists" \
      -o Dir::State::status="$lists/status" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
  }
  apt update
  (cd "$folder/packages" && apt download "python$version" "python$version-minimal" "libpython$version-minimal" \
    "libpython$version-stdlib" "libpython$version-dev" libc6 libgcc-s1 libstdc++6 libexpat1 zlib1g libffi8 libbz2-1.0 \
    liblzma5 libssl3 libsqlite3-0 libuuid1 libcrypt1 libdb5.3 libreadline8 libtinfo6 libncursesw6)
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$system"; done
fi

if [ ! -d "$folder/site/pytest" ]; then
  "$python" -m pip install --quiet --disable-pip-version-check --target "$folder/site" --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    --implementation cp --python-version "$version" -c "$root/constraints.txt" \
    numpy pydantic pyyaml rich safetensors hypothesis pytest regex
fi

cmake -S "$root/native" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DMICRONET_PYTHON=ON \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DPython_EXECUTABLE="$(command -v "$python")" -DPython_INCLUDE_DIR="$system/usr/include/python$version" \
  -DCMAKE_CXX_FLAGS="-idirafter $system/usr/include"
cmake --build "$folder/build" --parallel 2 --target _native

# The name that CMake gave is that of the Python which helped to build.
rm -rf "$folder/site/micronet_lm"
cp -r "$root/src/micronet_lm" "$folder/site/"
rm -f "$folder"/site/micronet_lm/runtime/_native*.so
cp "$folder"/build/_native.*.so "$folder/site/micronet_lm/runtime/_native.so"

# With its own name as sys.executable: a process that Python starts would else be a program for another processor.
cat > "$folder/python" <<EOF
#!/bin/sh
exec qemu-aarch64 -0 "$folder/python" -L "$system" -E PYTHONHOME="$system/usr" -E PYTHONPATH="$folder/site:$root" \\
  "$system/usr/bin/python$version" "\$@"
EOF
chmod +x "$folder/python"
"$folder/python" -c 'import platform, subprocess, sys, micronet_lm as mn
print(platform.machine(), mn.load().engine.kernels, flush=True)
subprocess.run([sys.executable, "-c", "print(\"and so are its children\")"], check=True)'
