# SPDX-License-Identifier: Apache-2.0
"""Two actors of two GPUs each, where four are visible: each sees its own, before it imports anything.

Usage: place_actors.py      with CUDA_VISIBLE_DEVICES=3,4,5,6 if it is not set

Nothing of CUDA is used: without a driver the names are believed, so this runs on any machine. Needs cloudpickle.
"""

import os
import time

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "3,4,5,6")

import gar
from gar import col


@gar.cls(gpus=2, max_concurrency=2)
class Model:
    seen_at_import = os.environ["CUDA_VISIBLE_DEVICES"]

    def __init__(self):
        self.devices = os.environ["CUDA_VISIBLE_DEVICES"]  # a real model would load its weights here

    @gar.method.batch(return_dtype="string", batch_size=16)
    def run(self, numbers):
        time.sleep(0.01)  # work, so that both have some
        return [self.devices] * len(numbers)


def main():
    visible = os.environ["CUDA_VISIBLE_DEVICES"]
    devices = [device.name for device in gar.resources().devices]
    print(f"\n== two actors of two GPUs each, CUDA_VISIBLE_DEVICES={visible}")
    if len(devices) < 4:
        print(f"the driver of this machine knows only {len(devices)} of these GPUs, so they cannot be placed")
        return
    rows = gar.range(0, 1024)
    (
        rows.select(Model().run(col("id")).alias("devices"))
        .groupby("devices")
        .agg(col("devices").count().alias("rows"))
        .sort("devices")
        .show()
    )


if __name__ == "__main__":
    main()
