#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures (once) and builds one kind of build in build/KIND.
#
# Usage: tools/build.sh release|asan|tsan|fuzz [NINJA ARGUMENT ...]
#   release  gcc, optimised; also staged for Python in build/stage (see below)
#   asan     clang, AddressSanitizer + UBSan
#   tsan     clang, ThreadSanitizer
#   fuzz     clang, libFuzzer + ASan + UBSan
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:?usage: tools/build.sh release|asan|tsan|fuzz}
shift
if [ "$kind" = release ]; then tools/setup.sh build; else tools/setup.sh test; fi
export PATH=$PWD/.venv/bin:$PATH
log=build/logs/configure-$kind.log
mkdir -p build/logs

options=(-Dbuildtype=debugoptimized)
case $kind in
    # Tests are compiled in the other builds; pkg-config may not know cmocka at this level.
    release) compilers=(CC="${CC:-gcc}" CXX="${CXX:-g++}"); options=(-Dbuildtype=release -Ddebug=true -Dtests=false -Dfuzz=false) ;;
    asan) compilers=(CC=clang-14 CXX=clang++-14); options+=(-Db_sanitize=address,undefined -Dpython=false) ;;
    tsan) compilers=(CC=clang-14 CXX=clang++-14); options+=(-Db_sanitize=thread -Dpython=false -Dfuzz=false -Dcli=false -Dlibrary=false) ;;
    fuzz) compilers=(CC=clang-14 CXX=clang++-14); options+=(-Db_sanitize=address,undefined -Dlibfuzzer=true -Dpython=false -Dtests=false -Dcli=false -Dlibrary=false) ;;
    *) echo "tools/build.sh: no such kind of build: $kind" >&2; exit 2 ;;
esac

# Configure when there is no build yet, or when its options or tools changed.
stamp="${options[*]} ${compilers[*]} $(cat .venv/.stamp-python .venv/.stamp-build)"
if [ ! -f "build/$kind/build.ninja" ] || [ "$(cat "build/$kind/.stamp" 2>/dev/null || true)" != "$stamp" ]; then
    rm -rf "build/$kind"
    env "${compilers[@]}" meson setup "build/$kind" "${options[@]}" >"$log" 2>&1 ||
        { tail -n 30 "$log" >&2; exit 1; }
    printf '%s\n' "$stamp" >"build/$kind/.stamp"
fi
# Meson's own words, when a build file changed, go to the log.
ninja -C "build/$kind" build.ninja >>"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
ninja -C "build/$kind" --quiet "$@"

# The release build is installed into build/stage, and .venv sees the Python package there.
if [ "$kind" = release ] && [ $# = 0 ]; then
    meson install -C build/release --no-rebuild --only-changed --quiet --destdir "$PWD/build/stage"
    site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    staged=$(find build/stage -type d -path '*-packages/gar' -prune | head -n 1)
    if [ -n "$staged" ]; then
        printf '%s\n' "$PWD/$(dirname "$staged")" >"$site/gar-stage.pth"
    fi
fi
