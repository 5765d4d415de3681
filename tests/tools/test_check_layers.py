# SPDX-License-Identifier: Apache-2.0
"""The layer checker on small good and broken trees."""

import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tools"))

import check_layers

LAYERS = "base :\nos : base\nformats : base\nengine : *\n"
GOOD = {
    "base/a.h": "int gar_a(void);\n",
    "base/a.c": '#include "base/a.h"\n\n#include <stdio.h>\n',
    "base/a_test.c": '#include "base/a.h"\n#include <cmocka.h>\n',
    "os/b.h": '#include "base/a.h"\n#include <gar/gar.h>\n',
    "formats/parquet/c.h": '#include "base/a.h"\n',
    "engine/d.c": '#include "os/b.h"\n#include "formats/parquet/c.h"\n',
}


def faults_of(tmp_path, changes=None, layers=LAYERS):
    """Faults of the good tree with some files changed or, where None, left out."""
    for path, text in {**GOOD, **(changes or {})}.items():
        if text is not None:
            (tmp_path / "src" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "src" / path).write_text(text)
    (tmp_path / "layers.txt").write_text(layers)
    return check_layers.check(str(tmp_path / "src"), str(tmp_path / "layers.txt"))


def test_good_tree(tmp_path):
    assert faults_of(tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"base/e.c": '#include "os/b.h"\n'}, "base may not include os"),
        ({"base/e_test.c": '#include "os/b.h"\n'}, "base may not include os"),
        ({"os/e.c": '#include "../base/a.h"\n'}, 'as "folder/file.h"'),
        ({"os/e.c": '#include "b.h"\n'}, 'as "folder/file.h"'),
        ({"os/e.c": '#include "base/missing.h"\n'}, "no file base/missing.h"),
        ({"base/f_priv.h": "", "os/e.c": '#include "base/f_priv.h"\n'}, "private to base"),
        ({"os/e.c": '#include "base/a_test.c"\n'}, "is a test"),
        ({"base/a.c": "#include <stdio.h>\n"}, "must be its own header"),
        (
            {"base/b.h": "", "base/a.c": '#include "base/b.h"\n#include "base/a.h"\n'},
            "must be its own header",
        ),
        ({"extra/e.c": ""}, "its folder is not in"),
        ({"os/b.h": ""}, "os lists base but no file uses it"),
        ({"formats/parquet/c.h": None, "engine/d.c": ""}, "formats has no file"),
        ({"base/a.h": '#include "base/e.h"\n', "base/e.h": '#include "base/a.h"\n'}, "cycle: base/a.h"),
        ({"base/a.h": '#include "base/a.h"\n'}, "cycle: base/a.h -> base/a.h"),
    ],
)
def test_fault_is_found(tmp_path, changes, words):
    faults = faults_of(tmp_path, changes)
    assert any(words in fault for fault in faults), faults


def test_private_header_in_its_own_folder(tmp_path):
    assert faults_of(tmp_path, {"base/f_priv.h": "", "base/e.c": '#include "base/f_priv.h"\n'}) == []


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ("os : base\nbase :\n", "before it is declared"),
        ("base :\nbase :\n", "listed twice"),
        ("base :\nos : base, base\n", "lists a folder twice"),
        ("base\n", "expected"),
    ],
)
def test_broken_layers_file(tmp_path, layers, words):
    with pytest.raises(check_layers.LayerError, match=words):
        faults_of(tmp_path, layers=layers)


def test_the_tree_itself(capsys):
    status = check_layers.main(["check_layers.py"])
    assert status == 0, capsys.readouterr().out
