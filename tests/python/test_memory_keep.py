# SPDX-License-Identifier: Apache-2.0
"""Free memory above the cap goes back to the system when nothing uses it any more."""

import json
import os
import subprocess
import sys

PROGRAM = """
import gc, json, time
import gar
from gar import col

def held(limit):
    gc.collect()
    for _ in range(200):  # dropped queries end on their own threads
        now = gar._native.statistics()
        if now["memory_live_bytes"] == 0 and now["memory_held_bytes"] <= limit:
            break
        time.sleep(0.05)
    return now

keep = gar._native.statistics()["memory_keep_bytes"]
frame = gar.range(3_000_000).select(col("id"), (col("id") * 7 % 1000003).alias("k"))
result = frame.collect()
with_result = gar._native.statistics()
del result, frame
after_result = held(keep)
runs = [gar.range(2_000_000).select((col("id") * -1).alias("k")).sort("k").start() for _ in range(3)]
time.sleep(0.05)
del runs
after_drop = held(keep)
print(json.dumps([keep, with_result, after_result, after_drop]))
"""


def run(variable: str) -> list:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "GAR_MEMORY_KEEP": variable},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


def test_held_memory_falls_to_the_cap():
    keep, with_result, after_result, after_drop = run("4000000")
    assert keep == 4_000_000
    assert with_result["memory_live_bytes"] > 40_000_000
    for after in (after_result, after_drop):
        assert after["memory_live_bytes"] == 0
        assert after["memory_held_bytes"] <= keep


def test_default_cap():
    keep = run("0")[0]
    assert 0 < keep <= 2 << 30
