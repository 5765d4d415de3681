# SPDX-License-Identifier: Apache-2.0
"""Check that the #include edges between the folders of src/ follow tools/layers.txt.

layers.txt has one folder a line, lowest first:   name : allowed folder, allowed folder, ...
A folder may list only folders above its own line, so the folder graph is acyclic by construction;
cycles between files are checked as well. `*` stands for every folder above.

What is a fault:
  - a file in a folder that layers.txt does not name, or a named folder that has no file
  - an include of a folder that is not allowed, of a missing file, with `..`, or without a folder
  - an include of another folder's `x_priv.h` or `x_test.c`
  - a source whose first project include is not its own header, when it has one
  - a permission that no file uses (a listed edge must be true; `*` is exempt)
  - a cycle between files

Tests (`*_test.c`, `*_stress.c`) may include what their folder may. `<gar/...>` is public and always
allowed. A header in a sub-folder belongs to the first folder of its path.

Usage: check_layers.py [SRC [LAYERS]]. Prints one line per fault; exit status 1 if there is any.
"""

import os
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
SOURCES = (".c", ".h", ".cc", ".cpp", ".hpp", ".def", ".inc")
TEST_ENDS = ("_test.c", "_stress.c")


class LayerError(Exception):
    """layers.txt itself is wrong."""


def read_layers(path):
    """Return {folder: (set of allowed folders, whether it was written as *)} in file order."""
    allowed = {}
    with open(path, encoding="utf8") as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            name, colon, rest = line.partition(":")
            name = name.strip()
            if not colon or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
                raise LayerError(f"{path}:{number}: expected 'folder : folder, ...'")
            if name in allowed:
                raise LayerError(f"{path}:{number}: {name} is listed twice")
            listed = [dep.strip() for dep in rest.split(",") if dep.strip()]
            if len(set(listed)) != len(listed):
                raise LayerError(f"{path}:{number}: {name} lists a folder twice")
            if listed == ["*"]:
                allowed[name] = (set(allowed), True)
                continue
            late = sorted(set(listed) - set(allowed))
            if late:
                raise LayerError(f"{path}:{number}: {name} names {', '.join(late)} before it is declared")
            allowed[name] = (set(listed), False)
    return allowed


def source_files(src):
    """Paths of the C and C++ files under src, relative to it, sorted."""
    found = []
    for folder, _, names in os.walk(src):
        for name in names:
            if name.endswith(SOURCES):
                found.append(os.path.relpath(os.path.join(folder, name), src).replace(os.sep, "/"))
    return sorted(found)


def check_include(path, include, folder, allowed, known):
    """The fault of one include, or None."""
    if ".." in include.split("/") or "/" not in include:
        return f'{path}: write "{include}" as "folder/file.h"'
    if include not in known:
        return f"{path}: there is no file {include}"
    to = include.split("/")[0]
    if include.endswith(TEST_ENDS):
        return f"{path}: {include} is a test and not to be included"
    if to == folder:
        return None
    if to not in allowed[folder][0]:
        return f"{path}: {folder} may not include {to} ({include})"
    if re.search(r"_priv\.\w+$", include):
        return f"{path}: {include} is private to {to}"
    return None


def own_header_fault(path, includes, known):
    """A source must include its own header before any other project header."""
    stem, _dot, end = path.rpartition(".")
    if end not in ("c", "cc", "cpp") or f"{stem}.h" not in known:
        return None
    if not includes or includes[0] != f"{stem}.h":
        return f'{path}: the first project include must be its own header "{stem}.h"'
    return None


def file_cycles(edges):
    """One message per cycle met in a depth-first walk, without recursion."""
    faults, done = [], set()
    for start in sorted(edges):
        if start in done:
            continue
        trail, on_trail = [start], {start}
        stack = [iter(edges.get(start, ()))]
        while stack:
            target = next(stack[-1], None)
            if target is None:
                stack.pop()
                done.add(trail[-1])
                on_trail.discard(trail.pop())
            elif target in on_trail:
                loop = [*trail[trail.index(target) :], target]
                faults.append("cycle: " + " -> ".join(loop))
            elif target not in done:
                trail.append(target)
                on_trail.add(target)
                stack.append(iter(edges.get(target, ())))
    return faults


def check(src, layers):
    """All faults of the tree, as lines."""
    allowed = read_layers(layers)
    paths = source_files(src)
    known = set(paths)
    faults, edges, used, seen = [], {}, set(), set()
    for path in paths:
        folder = path.split("/")[0] if "/" in path else ""
        if folder not in allowed:
            faults.append(f"{path}: its folder is not in {layers}")
            continue
        seen.add(folder)
        with open(os.path.join(src, path), encoding="utf8") as file:
            includes = INCLUDE.findall(file.read())
        for include in includes:
            fault = check_include(path, include, folder, allowed, known)
            if fault:
                faults.append(fault)
                continue
            used.add((folder, include.split("/")[0]))
            edges.setdefault(path, []).append(include)
        fault = own_header_fault(path, includes, known)
        if fault:
            faults.append(fault)
    for folder, (listed, is_all) in allowed.items():
        if folder not in seen:
            faults.append(f"{layers}: {folder} has no file in {src}")
        elif not is_all:
            for dep in sorted(listed):
                if (folder, dep) not in used:
                    faults.append(f"{layers}: {folder} lists {dep} but no file uses it")
    return faults + file_cycles(edges)


def main(argv):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    src = argv[1] if len(argv) > 1 else os.path.join(root, "src")
    layers = argv[2] if len(argv) > 2 else os.path.join(root, "tools", "layers.txt")
    try:
        faults = check(src, layers)
    except LayerError as error:
        print(error)
        return 1
    for fault in faults:
        print(fault)
    if not faults:
        print(f"layers: {len(read_layers(layers))} folders, ok")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
