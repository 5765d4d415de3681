# SPDX-License-Identifier: Apache-2.0
"""The Python side of a worker process, without a pool: how it is started and what it says of exceptions."""

import json
import pickle
import sys

from gar import _worker


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Busy(Exception):
    retry_after = 1.5


def fail(error):
    try:
        raise error
    except BaseException as caught:
        return _worker.describe(caught)


def test_exceptions_are_described_whatever_they_do():
    assert fail(ValueError("bad row"))[:2] == ("ValueError", "bad row")
    assert "bad row" in fail(ValueError("bad row"))[2]
    name, text, trace, wait = fail(Unprintable())
    assert (name, wait) == ("Unprintable", -1)
    assert "cannot be made" in text
    assert "fail" in trace
    assert fail(KeyboardInterrupt())[0] == "KeyboardInterrupt"
    assert fail(SystemExit(3))[:2] == ("SystemExit", "3")
    assert fail(StopIteration("x"))[0] == "StopIteration"


def test_texts_can_pass_as_c_strings():
    assert fail(ValueError("a\0b \ud800"))[1] == "a\ufffdb ?"


def test_a_wait_is_passed_on():
    assert fail(Busy())[3] == 1_500_000_000


def test_the_command_has_the_path_but_not_the_current_folder():
    program, *flags, start = _worker.command()
    assert program == sys.executable
    assert flags[-1] == "-c"
    line = next(line for line in start.splitlines() if line.startswith("sys.path"))
    path = json.loads(line.split(" = ", 1)[1])
    assert path == [entry for entry in sys.path if entry]


class Doubler:
    def __init__(self, name, index, count, inputs, outputs):
        self.told = (name, index, count)

    def call(self, columns, rows):
        if rows == 0:
            raise ValueError("no rows")
        return [column * 2 for column in columns]


def test_the_shell_never_raises():
    shell = _worker.Shell()
    assert shell.create("f", 0, 1, b"no pickle", None, None)[0] == "UnpicklingError"
    assert shell.create("f", 1, 2, pickle.dumps(Doubler), None, None) is None
    assert shell.call([1, 2], 1) == [2, 4]
    assert shell.call([1, 2], 0)[:2] == ("ValueError", "no rows")
    shell.close()
    shell.close()
