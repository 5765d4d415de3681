# SPDX-License-Identifier: Apache-2.0
"""What a user installs: the C library with its pkg-config file, and the Python wheel."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGE = ROOT / "build" / "stage"
PEOPLE = str(ROOT / "examples" / "data" / "people.csv")


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=900, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def library():
    (path,) = STAGE.glob("**/libgar.so")
    return path


def test_library_has_a_soname_and_shows_gar_only(library):
    assert "libgar.so.0]" in run("readelf", "-d", library)
    names = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
    assert len(names) > 50
    assert [name for name in names if not name.startswith("gar_")] == []


def test_every_declared_function_is_there(library):
    declared = set()
    for header in ROOT.glob("include/gar/*.h"):
        text = run("gcc", "-E", "-P", "-I", ROOT / "include", header)
        declared |= {
            word for word in text.replace("(", " ( ").replace("*", " ").split() if word.startswith("gar_")
        }
    shown = {line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()}
    assert shown <= declared, f"shown but in no public header: {sorted(shown - declared)}"


@pytest.mark.parametrize(
    "compiler", [["gcc", "-std=c17"], ["clang-14", "-std=c11"], ["g++", "-std=c++17", "-x", "c++"]]
)
def test_a_program_builds_with_pkg_config(tmp_path, library, compiler):
    prefix = library.parent
    environment = {
        **os.environ,
        "PKG_CONFIG_PATH": str(prefix / "pkgconfig"),
        "PKG_CONFIG_SYSROOT_DIR": str(STAGE),
        "LD_LIBRARY_PATH": str(prefix),
    }
    flags = run("pkg-config", "--cflags", "--libs", "gar", env=environment).split()
    if "c++" in compiler:
        source = tmp_path / "version.cc"
        source.write_text(
            "#include <gar/gar.h>\n#include <cstdio>\nint main() { std::puts(gar_version()); }\n"
        )
        run(*compiler, source, "-o", tmp_path / "program", *flags)
        assert run(tmp_path / "program", env=environment).startswith("0.")
        return
    source = ROOT / "examples" / "c" / "people.c"
    run(*compiler, "-Wall", "-Werror", source, "-o", tmp_path / "people", *flags)
    assert "Lovelace" in run(tmp_path / "people", PEOPLE, env=environment)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel that `pip install .` makes; the build folder is kept so that a second run is short."""
    folder = tmp_path_factory.mktemp("wheel")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    run(
        sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--disable-pip-version-check", "-q",
        f"--config-settings=build-dir={ROOT / 'build' / 'wheel'}", "-w", folder, ROOT, env=environment,
    )  # fmt: skip
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_is_abi3_and_whole(wheel):
    assert "-cp311-abi3-" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    assert "gar/__init__.py" in names
    assert "gar/py.typed" in names
    assert any(name.startswith("gar/") and name.endswith(".abi3.so") for name in names)
    assert any(name.endswith(".pyi") for name in names)
    assert any(name.endswith("/scripts/gar") for name in names)
    assert any("LICENSE" in name for name in names)
    strangers = [
        name
        for name in names
        if not name.startswith("gar/") and ".dist-info/" not in name and "/scripts/" not in name
    ]
    assert strangers == []


def test_wheel_works_in_a_bare_environment(wheel, tmp_path):
    """No numpy, no pyarrow: import, a query, the command; and no engine thread starts by the import."""
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", wheel)
    script = (
        "import os, sys, gar\n"
        "assert len(os.listdir('/proc/self/task')) == 1, os.listdir('/proc/self/task')\n"
        "assert not {'numpy', 'pyarrow', 'pandas'} & set(sys.modules)\n"
        "frame = gar.from_pydict({'a': [1, 2, 3]}).with_column('b', gar.col('a') + 1)\n"
        "print(frame.where('b > 2').to_pydict())\n"
    )
    assert run(python, "-c", script, cwd=tmp_path) == "{'a': [2, 3], 'b': [3, 4]}\n"
    assert run(tmp_path / "env" / "bin" / "gar", "count", PEOPLE, cwd=tmp_path) == "6\n"
