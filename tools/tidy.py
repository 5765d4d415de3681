# SPDX-License-Identifier: Apache-2.0
"""House rules that a reviewer would otherwise repeat. Exit 1 with one line per fault.

Rules, with the file set each applies to:
  length      C and Python files have at most 1,200 lines; C lines at most 130 columns
  function    C functions have at most 100 lines
  banned      calls that have a better form here (see BANNED)
  marker      no notes for later: the marker words of MARKERS
  readme      every folder that holds code has a README.md; under src/ it names each header that others include
  licence     the SPDX line is in the first two lines (after #! where there is one)
  orphan      every source under src/ is named in a meson.build; every header is included by someone
  test        every *_test.c and *_stress.c is registered in a meson.build
  blob        no tracked file above 1 MiB
  path        no absolute path of one developer's machine
  nolint      NOLINT names its check and gives a reason: NOLINTNEXTLINE(check): reason
  space       text ends with one newline and no line ends with blanks

Exceptions are rows of tools/tidy_exceptions.txt: `rule path[:name] reason`. A row that no longer
excuses anything is itself a fault, so the list can only shrink.

Usage: tidy.py [ROOT]
"""

import os
import re
import subprocess
import sys

FILE_LINES_MAX = 1200
COLUMNS_MAX = 130
FUNCTION_LINES_MAX = 100
BLOB_BYTES_MAX = 1 << 20

C_ENDS = (".c", ".h", ".cc", ".cpp", ".hpp")
TEXT_ENDS = (
    *C_ENDS,
    ".py",
    ".pyi",
    ".sh",
    ".md",
    ".txt",
    ".toml",
    ".build",
    ".options",
    ".def",
    ".map",
    ".inc",
)
LICENSED_ENDS = (*C_ENDS, ".py", ".pyi", ".sh", ".build", ".options", ".def")
CODE_FOLDERS = ("src", "python", "cli", "fuzz", "bench", "tools", "tests", "examples", "docs", "include")

# Spelled in pieces so that this file passes its own rule.
MARKERS = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(work|home|root|Users)/\w")
NOLINT = re.compile(r"NOLINT(\w*)(\([^)]*\))?(: \S.*)?")

IN_TESTS = "tests"
# What sees the public API only has the C library's allocator.
OUTSIDE = ("cli/", "python/", "fuzz/", "examples/", IN_TESTS)
# call -> (where it is allowed: path prefixes, what to use instead)
BANNED = {
    "malloc": (("src/base/", *OUTSIDE), "gar_malloc"),
    "calloc": (("src/base/", *OUTSIDE), "gar_calloc"),
    "realloc": (("src/base/", *OUTSIDE), "gar_realloc"),
    "free": (("src/base/", *OUTSIDE), "gar_free"),
    "strdup": (OUTSIDE, "gar_strdup"),
    "strcpy": ((IN_TESTS,), "memcpy with a checked length"),
    "strcat": ((), "gar_strbuf"),
    "strncpy": ((), "memcpy with a checked length"),
    "sprintf": ((), "snprintf"),
    "vsprintf": ((), "vsnprintf"),
    "gets": ((), "fgets"),
    "atoi": ((), "base/number_text.h"),
    "atol": ((), "base/number_text.h"),
    "atof": ((), "base/number_text.h"),
    "strtok": ((), "an explicit scan"),
    "rand": ((IN_TESTS,), "a seeded generator"),
    "srand": ((IN_TESTS,), "a seeded generator"),
    "alloca": ((), "an arena"),
    "longjmp": ((), "a status"),
    "system": ((IN_TESTS,), "posix_spawn"),
    "localtime": ((), "base/calendar.h"),
    "gmtime": ((), "base/calendar.h"),
}
PTHREAD = re.compile(r"\bpthread_(\w+)\s*\(")
# The extension sees the public API only, so os/ is not its to use: it may keep values of a thread and name it, but has
# no threads and no locks of its own (a lock beside the GIL is a deadlock).
PTHREAD_OF_EXTENSION = ("key_create", "once", "getspecific", "setspecific", "self", "setname_np")
PYTHON_C = re.compile(r"\bPy(?:_|[A-Z])\w*\s*\(")


class Fault:
    """One broken rule at one place; `name` tells apart several of a rule in a file."""

    def __init__(self, rule, path, line, text, name=""):
        self.rule, self.path, self.line, self.text, self.name = rule, path, line, text, name

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.rule}: {self.text}"

    def key(self):
        return (self.rule, f"{self.path}:{self.name}" if self.name else self.path)


def strip_c(text):
    """C text with comments and string contents blanked, line numbers kept."""

    def blank(match):
        token = match.group(0)
        if token.startswith(("/*", "//")):
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1]

    return re.sub(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.DOTALL
    )


def is_test(path):
    return path.startswith("tests/") or re.search(r"_(test|stress)\.c$|_test_priv\.h$", path) is not None


def is_allowed(path, where):
    for prefix in where:
        if prefix == IN_TESTS:
            if is_test(path):
                return True
        elif path.startswith(prefix):
            return True
    return False


def check_text(path, text):
    """Rules for any text file."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        marker = MARKERS.search(line)
        if marker:
            yield Fault("marker", path, number, f"'{marker.group(0)}' is not kept in the tree")
        if MACHINE_PATH.search(line):
            yield Fault("path", path, number, "absolute path of one machine")
        if line != line.rstrip(" \t") and not path.endswith(".md"):
            yield Fault("space", path, number, "blanks at the end of the line")
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield Fault("space", path, 0, "the file must end with exactly one newline")
    if path.endswith(LICENSED_ENDS) or os.path.basename(path) == "Makefile":
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(lines[:2]):
            yield Fault("licence", path, 1, "the SPDX line is missing")
    if path.endswith((*C_ENDS, ".py")) and len(lines) - 1 > FILE_LINES_MAX:
        yield Fault("length", path, 0, f"{len(lines) - 1} lines, at most {FILE_LINES_MAX}")


def functions(code):
    """(name, first line, line count) of each function of clang-formatted C."""
    start, name = 0, ""
    lines = code.split("\n")
    for number, line in enumerate(lines, 1):
        if line == "{":
            head = number - 1
            while head > 1 and not re.match(r"[A-Za-z_].*\(", lines[head - 1]):
                head -= 1
            found = re.search(r"(\w+)\s*\(", lines[head - 1])
            start, name = head, found.group(1) if found else "?"
        elif line == "}" and start:
            yield name, start, number - start + 1
            start = 0


def check_c(path, text):
    """Rules for C and C++ sources and headers."""
    code = strip_c(text)
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS_MAX:
            yield Fault("length", path, number, f"{len(line)} columns, at most {COLUMNS_MAX}")
        note = NOLINT.search(line)
        if note and note.group(1) != "END" and not (note.group(2) and note.group(3)):
            yield Fault("nolint", path, number, "write NOLINTNEXTLINE(check): reason")
    for number, line in enumerate(code.split("\n"), 1):
        if line.lstrip().startswith("#"):
            continue
        for call in re.findall(r"(?<![\w.>])(\w+)\s*\(", line):
            where, instead = BANNED.get(call, (None, None))
            if where is not None and not is_allowed(path, where):
                yield Fault("banned", path, number, f"{call}: use {instead}", call)
        for call in PTHREAD.findall(line):
            known = path.startswith("python/_gar/") and call in PTHREAD_OF_EXTENSION
            if not known and not path.startswith("src/os/") and not is_test(path):
                yield Fault("banned", path, number, "pthread_*: use os/", "pthread")
        if PYTHON_C.search(line) and not path.startswith("python/"):
            yield Fault("banned", path, number, "Py*: only the extension speaks to Python", "Py")
    if path.endswith((".c", ".cc", ".cpp")):
        for name, number, count in functions(code):
            if count > FUNCTION_LINES_MAX:
                yield Fault(
                    "function", path, number, f"{name} has {count} lines, at most {FUNCTION_LINES_MAX}", name
                )


def check_tree(root, paths):
    """Rules about files together: READMEs, registration, orphans."""
    present = set(paths)
    builds, includes = {}, set()
    for path in paths:
        if os.path.basename(path) == "meson.build":
            builds[os.path.dirname(path)] = read(root, path)
        elif path.endswith((*C_ENDS, ".inc")):
            includes.update(re.findall(r'#[ \t]*include[ \t]*["<]([^">]+)[">]', read(root, path)))
    for path in paths:
        folder = os.path.dirname(path)
        if not path.startswith(tuple(f"{code}/" for code in CODE_FOLDERS)):
            continue
        if path.endswith(C_ENDS) and path.count("/") >= 2 and path.startswith("src/"):
            if f"{folder}/README.md" not in present:
                yield Fault("readme", f"{folder}/README.md", 0, "the folder has no README.md")
            elif path.endswith((".h", ".hpp")) and not path.endswith("_priv.h"):
                stem = os.path.basename(path).partition(".")[0]
                if not re.search(rf"(?<!\w){stem}(?!\w)", read(root, f"{folder}/README.md")):
                    yield Fault("readme", path, 0, f"{folder}/README.md does not name it")
        if path.startswith("src/") and path.endswith((".c", ".cc", ".cpp")):
            while folder and folder not in builds:
                folder = os.path.dirname(folder)
            listed = any(
                re.search(r"'" + re.escape(os.path.relpath(path, place)) + r"'", text)
                for place, text in builds.items()
                if path.startswith(f"{place}/")
            )
            if not listed and os.path.basename(path) not in {os.path.basename(name) for name in includes}:
                rule = "test" if is_test(path) else "orphan"
                yield Fault(rule, path, 0, "no meson.build names it")
        if path.startswith("src/") and path.endswith((".h", ".hpp", ".def", ".inc")):
            if os.path.relpath(path, "src") not in includes:
                yield Fault("orphan", path, 0, "no file includes it")
    for folder in CODE_FOLDERS:
        if any(path.startswith(f"{folder}/") for path in paths) and folder not in ("src", "include"):
            if f"{folder}/README.md" not in present:
                yield Fault("readme", f"{folder}/README.md", 0, "the folder has no README.md")


def read(root, path):
    with open(os.path.join(root, path), encoding="utf8", newline="") as file:
        return file.read()


def tracked(root):
    """Files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
    ).stdout.decode()
    return sorted(path for path in listed.split("\0") if path and os.path.isfile(os.path.join(root, path)))


def read_exceptions(root):
    """{(rule, place): line number} of tools/tidy_exceptions.txt."""
    path = os.path.join(root, "tools", "tidy_exceptions.txt")
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf8") as file:
            for number, line in enumerate(file, 1):
                words = line.split("#")[0].split(None, 2)
                if not words:
                    continue
                if len(words) < 3:
                    raise SystemExit(f"{path}:{number}: expected 'rule path reason'")
                rows[(words[0], words[1])] = number
    return rows


def check(root, paths=None):
    """All faults of the tree that no exception covers, as lines."""
    paths = tracked(root) if paths is None else paths
    faults = []
    for path in paths:
        size = os.path.getsize(os.path.join(root, path))
        if size > BLOB_BYTES_MAX:
            faults.append(Fault("blob", path, 0, f"{size} bytes, at most {BLOB_BYTES_MAX}"))
        elif path.endswith(TEXT_ENDS) or os.path.basename(path) == "Makefile":
            text = read(root, path)
            faults += check_text(path, text)
            if path.endswith(C_ENDS):
                faults += check_c(path, text)
    faults += check_tree(root, paths)
    excused = read_exceptions(root)
    used = {fault.key() for fault in faults if fault.key() in excused}
    lines = sorted({str(fault) for fault in faults if fault.key() not in excused})
    for key in sorted(set(excused) - used):
        lines.append(f"tools/tidy_exceptions.txt:{excused[key]}: excuses nothing any more: {' '.join(key)}")
    return lines


def main(argv):
    root = argv[1] if len(argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    lines = check(root)
    for line in lines:
        print(line)
    if not lines:
        print("tidy: ok")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
