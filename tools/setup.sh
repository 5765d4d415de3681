#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a machine ready for a level of work: missing Debian packages, then .venv from PyPI.
#
# Usage: tools/setup.sh build|demo|test|lint
# Every level includes the one before; only demo stands aside, on build alone. What is there already is left alone, so a second run costs
# well under a second. The Python is $PYTHON, else the first python3 on the path (3.11 or newer).
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-build}
case $level in
    build) levels=(build) ;;
    demo) levels=(build demo) ;;
    test) levels=(build test) ;;
    lint) levels=(build test lint) ;;
    *) echo "usage: tools/setup.sh build|demo|test|lint" >&2; exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# The Debian packages of the wanted levels: "level: package package ..." lines.
wanted_packages() {
    local name
    for name in "${levels[@]}"; do
        sed -n "s/^$name://p" tools/debian-packages.txt
    done | tr -s ' ' '\n' | sed '/^$/d'
}

# Those of the packages given that are not installed.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null |
        sed -n 's/^ii *//p' || true)
    printf '%s\n' "$@" | grep -vxFf <(printf '%s\n' "$installed" none) || true
}

install_packages() {
    [ $# -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        fail "these Debian packages are missing; as root: apt-get install $*"
    fi
    say "installing Debian packages: $*"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -o DPkg::Lock::Timeout=300 update -q >build/logs/apt.log 2>&1 ||
        fail "apt-get update failed; see build/logs/apt.log"
    apt-get -o DPkg::Lock::Timeout=300 install -q -y --no-install-recommends "$@" \
        >>build/logs/apt.log 2>&1 || { tail -n 20 build/logs/apt.log >&2; fail "apt-get install failed"; }
}

mkdir -p build/logs

# The Python itself, not a shim or a link to it, with its version and what it lacks.
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { install_packages python3 python3-dev python3-venv; }
facts=$("$python" - <<'PY'
import importlib.util
import os
import sys
import sysconfig

lacks = []
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    lacks.append("headers")
if importlib.util.find_spec("ensurepip") is None:
    lacks.append("venv")
executable = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
print("%d.%d.%d" % sys.version_info[:3], executable, ",".join(lacks) or "nothing")
PY
) || fail "cannot run $python"
read -r python_version python_path python_lacks <<<"$facts"
python_minor=${python_version#3.}
python_minor=${python_minor%%.*}
if [[ $python_version != 3.* || $python_minor -lt 11 ]]; then
    fail "$python_path is Python $python_version; 3.11 or newer is needed (set PYTHON=...)"
fi

if command -v dpkg-query >/dev/null; then
    mapfile -t packages < <(wanted_packages)
    case $python_path in
        /usr/bin/*) packages+=(python3-dev python3-venv) ;;
        *) [ "$python_lacks" = nothing ] ||
            fail "$python_path lacks its $python_lacks; install them or set PYTHON=/usr/bin/python3" ;;
    esac
    mapfile -t missing < <(missing_packages "${packages[@]}")
    install_packages "${missing[@]}"
else
    say "no Debian package manager here: the packages of tools/debian-packages.txt must be installed"
fi

# .venv: made anew when the Python changes, brought up to date when a requirements file does.
stamp_python="$python_path $python_version"
if [ "$(cat .venv/.stamp-python 2>/dev/null || true)" != "$stamp_python" ]; then
    say "making .venv with Python $python_version ($python_path)"
    rm -rf .venv
    "$python_path" -m venv .venv
    printf '%s\n' "$stamp_python" >.venv/.stamp-python
fi
for name in "${levels[@]}"; do
    file=tools/requirements-$name.txt
    [ -f "$file" ] || continue
    hash=$(sha256sum <"$file")
    if [ "$(cat ".venv/.stamp-$name" 2>/dev/null || true)" != "$hash" ]; then
        say "installing Python packages of $file"
        .venv/bin/python -m pip install -q --disable-pip-version-check --no-input -r "$file" \
            >build/logs/pip.log 2>&1 ||
            { tail -n 20 build/logs/pip.log >&2; fail "pip install failed; see build/logs/pip.log"; }
        printf '%s\n' "$hash" >".venv/.stamp-$name"
    fi
done
