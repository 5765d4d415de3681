# SPDX-License-Identifier: Apache-2.0
"""The examples with models run as they are written."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gar

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, *arguments, status=0, **environment):
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_actors_are_placed():
    shown = run("place_actors.py", CUDA_VISIBLE_DEVICES="3,4,5,6")
    assert "│ 3,4     ┆" in shown and "│ 5,6     ┆" in shown


@pytest.mark.skipif(importlib.util.find_spec("magika") is None, reason="magika is not installed")
def test_files_are_classified(tmp_path):
    for i in range(40):
        (tmp_path / "in" / str(i % 3)).mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / str(i % 3) / f"{i}.x").write_text(
            f"import os\n\ndef main():\n    return os.getpid() + {i}\n" * 5
        )
    (tmp_path / "in" / "page").write_text(
        "<!DOCTYPE html><html><head><title>a</title></head><body>b</body></html>"
    )
    run("classify_files.py", "--out", tmp_path / "out", tmp_path / "in")
    found = gar.read_parquet(str(tmp_path / "out")).to_pylist()
    assert len(found) == 41
    for row in found:
        assert row["label"] == ("html" if row["path"].endswith("page") else "python"), row
        assert 0.5 < row["score"] <= 1 and row["size"] == os.path.getsize(row["path"])


def test_text_is_embedded(tmp_path):
    path, out = tmp_path / "in.parquet", tmp_path / "out"
    gar.from_pydict({"text": ["a", "bc", None] * 200}).write_parquet(str(path), single_file=True)
    if importlib.util.find_spec("sentence_transformers") is None:
        assert "needs the package sentence-transformers" in run("embed_text.py", path, out, status=1)
    (tmp_path / "sentence_transformers.py").write_text(
        "import numpy\n"
        "class SentenceTransformer:\n"
        "    def __init__(self, name, device):\n"
        "        assert device == 'cpu'\n"
        "        if name != 'here': raise OSError(f'{name} is no model')\n"
        "    def encode(self, text):\n"
        "        return numpy.array([[len(one), 0.5] for one in text], dtype='float32')\n"
    )
    arguments = ["--gpus", 0, "--actors", 2, path, out]
    path_there = {"PYTHONPATH": str(tmp_path)}
    shown = run("embed_text.py", "--model", "elsewhere", *arguments, status=1, **path_there)
    assert "elsewhere is no model" in shown and "Traceback" not in shown
    run("embed_text.py", "--model", "here", *arguments, **path_there)
    made = gar.read_parquet(str(out)).to_pydict()["embedding"]
    assert made[:3] == [b"\0\0\x80?\0\0\0?", b"\0\0\0@\0\0\0?", b"\0\0\0\0\0\0\0?"] and len(made) == 600
