# SPDX-License-Identifier: Apache-2.0
"""Files as rows: from_glob_path and read_blob."""

import os

import pytest

import gar
from gar import col

pytestmark = pytest.mark.settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of all sizes, some in folders: {path: content}."""
    root = tmp_path_factory.mktemp("files")
    made = {}
    sizes = {
        "a.bin": 0,
        "b.txt": 5,
        "c d.txt": 12,
        "deep/e.txt": 13,
        "deep/er/f": 5 << 20,
        "deep/er/ü": 70_000,
    }
    sizes.update({f"many/{i:03}": i for i in range(300)})
    for name, size in sizes.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        made[str(path)] = os.urandom(size)
        path.write_bytes(made[str(path)])
    (root / ".hidden").write_bytes(b"no")
    return root, dict(sorted(made.items()))


def test_listing(folder):
    root, files = folder
    frame = gar.from_glob_path(f"{root}/**")
    assert [(field.name, str(field.dtype)) for field in frame.schema()] == [
        ("path", "string"),
        ("size", "int64"),
        ("num_rows", "int64"),
    ]
    assert frame.to_pydict() == {
        "path": list(files),
        "size": [len(content) for content in files.values()],
        "num_rows": [None] * len(files),
    }
    assert frame.count_rows() == len(files)
    assert frame.where("num_rows is null and size = 12").count_rows() == 2
    assert gar.from_glob_path(root / "b.txt").to_pydict()["size"] == [5]
    assert gar.from_glob_path([f"{root}/*.txt", f"{root}/deep/*"]).count_rows() == 3


def test_contents(folder):
    root, files = folder
    frame = gar.read_blob(f"{root}/**")
    assert dict(zip(*frame.select("path", "content").to_pydict().values(), strict=True)) == files
    assert frame.to_pydict()["size"] == [len(content) for content in files.values()]
    assert frame.offset(3).limit(2).to_pydict()["content"] == list(files.values())[3:5]
    assert frame.where(col("content") == b"").to_pydict()["path"] == [p for p, c in files.items() if not c]
    assert frame.select(col("content").alias("x"), col("content").alias("y")).limit(1).to_pydict() == {
        "x": [next(iter(files.values()))],
        "y": [next(iter(files.values()))],
    }


def test_only_files_that_pass_are_opened(folder):
    root, _ = folder
    frame = gar.read_blob(f"{root}/**").where(col("path").endswith("ü") | (col("size") == 5)).collect()
    assert frame.count_rows() == 3
    assert frame.metrics["operators"][0]["files_read"] == 3


def test_contents_are_not_read_unless_asked(tmp_path):
    path = tmp_path / "gone"
    path.write_bytes(b"some")
    frame = gar.read_blob(path)
    path.unlink()
    assert frame.select("path", "size").to_pydict() == {"path": [str(path)], "size": [4]}
    with pytest.raises(FileNotFoundError, match="gone"):
        frame.collect()


def test_what_cannot_be_read(tmp_path):
    paths = [tmp_path / name for name in ("a", "b", "c")]
    for path in paths:
        path.write_bytes(path.name.encode())
    frame = gar.read_blob([str(path) for path in paths], on_error="null")
    paths[1].unlink()
    paths[2].write_bytes(b"grown since")
    assert frame.select("size", "content").to_pydict() == {
        "size": [1, 1, 11],
        "content": [b"a", None, b"grown since"],
    }


def test_errors(tmp_path):
    with pytest.raises(FileNotFoundError, match="no files match"):
        gar.from_glob_path(f"{tmp_path}/*.png")
    with pytest.raises(gar.GarUnsupportedError, match=r"/dev/null.* is no file"):
        gar.read_blob("/dev/null")
    with pytest.raises(ValueError, match="on_error must be 'raise' or 'null', got 'ignore'"):
        gar.read_blob("/proc/mounts", on_error="ignore")
    with pytest.raises(ValueError, match="no path given"):
        gar.read_blob([])
    name = os.fsencode(tmp_path) + b"/\xff"
    with open(name, "wb"):
        pass
    with pytest.raises(ValueError, match="no UTF-8"):
        gar.read_blob(f"{tmp_path}/*")


def test_files_that_do_not_say_their_size():
    content = gar.read_blob("/proc/self/status").to_pydict()["content"][0]
    assert content.startswith(b"Name:") and len(content) > 200


def test_contents_too_large_for_a_value(tmp_path):
    path = tmp_path / "huge"
    with open(path, "wb") as file:
        file.truncate(1 << 31)
    with pytest.raises(ValueError, match="has 2147483648 bytes"):
        gar.read_blob(path).collect()
