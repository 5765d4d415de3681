# SPDX-License-Identifier: Apache-2.0
"""The house rules on one small tree, each broken once."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))

import tidy

SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
GOOD = {
    "src/base/README.md": "# base\n\n`a.h`: one.\n",
    "src/base/meson.build": "# SPDX-License-Identifier: Apache-2.0\ngar_sources += files('a.c')\ngar_tests += {'base/a': files('a_test.c')}\n",
    "src/base/a.h": SPDX + "int gar_a(void);\n",
    "src/base/a.c": SPDX
    + '#include "base/a.h"\n\nint gar_a(void)\n{\n    return 1; /* malloc(1) in a comment */\n}\n',
    "src/base/a_test.c": SPDX + '#include "base/a.h"\n',
}
MARKER = "TO" + "DO"
LONG_FUNCTION = "int gar_a(void)\n{\n" + "    gar_b();\n" * 120 + "}\n"


def faults_of(tmp_path, changes=None):
    paths = []
    for path, text in {**GOOD, **(changes or {})}.items():
        if text is not None:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
            paths.append(path)
    return tidy.check(str(tmp_path), sorted(paths))


def test_good_tree(tmp_path):
    assert faults_of(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"src/base/a.h": "int gar_a(void);\n"}, "licence"),
        ({"src/base/a.h": SPDX + "int gar_a(void);"}, "space"),
        ({"src/base/a.h": SPDX + "int gar_a(void); \n"}, "space"),
        ({"src/base/a.h": SPDX + f"/* {MARKER}: later */\n"}, "marker"),
        ({"src/base/a.h": SPDX + "int gar_a(void);\n" * 1300}, "length"),
        ({"src/base/a.h": SPDX + "/* " + "x" * 140 + " */\n"}, "length"),
        ({"src/base/a.c": SPDX + LONG_FUNCTION}, "function"),
        ({"src/os/a.c": SPDX + "void gar_a(void)\n{\n    char *p = malloc(1);\n}\n"}, "malloc"),
        ({"src/base/a.c": SPDX + "void gar_a(void)\n{\n    pthread_self();\n}\n"}, "pthread"),
        ({"python/_gar/a.c": SPDX + "void gar_a(void)\n{\n    pthread_mutex_lock(&a);\n}\n"}, "pthread"),
        ({"src/base/a.c": SPDX + "void gar_a(void)\n{\n    PyLong_FromLong(1);\n}\n"}, "Py*"),
        ({"src/base/a.c": SPDX + "int a; /* NOLINT */\n"}, "nolint"),
        ({"src/base/README.md": None}, "readme"),
        ({"src/base/README.md": "# base\n"}, "does not name it"),
        ({"src/base/b.c": SPDX}, "orphan"),
        ({"src/base/b.h": SPDX}, "orphan"),
        ({"src/base/b_test.c": SPDX}, "test: no meson.build"),
        ({"src/base/README.md": "# base\n\nSee /ho" + "me/someone/notes.\n"}, "path"),
        ({"src/base/README.md": "x" * ((1 << 20) + 1)}, "blob"),
    ],
)
def test_fault_is_found(tmp_path, changes, rule):
    faults = faults_of(tmp_path, changes)
    assert any(rule in fault for fault in faults), faults


def test_exception_excuses_and_must_be_used(tmp_path):
    (tmp_path / "tools").mkdir()
    rows = tmp_path / "tools" / "tidy_exceptions.txt"
    rows.write_text("function src/base/a.c:gar_a one switch, a case per type\n")
    assert faults_of(tmp_path, {"src/base/a.c": SPDX + '#include "base/a.h"\n' + LONG_FUNCTION}) == []
    assert any("excuses nothing" in fault for fault in faults_of(tmp_path))


def test_strings_and_comments_are_no_code():
    code = tidy.strip_c("/* malloc( */ x = \"malloc(\"; // free(\n'\\'' y")
    assert "malloc" not in code and "free" not in code
    assert code.count("\n") == 1 and "y" in code
