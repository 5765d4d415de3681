# SPDX-License-Identifier: Apache-2.0
"""CUDA's own view of the visibility variables against ours. See README.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = Path(__file__).with_name("cuda_probe.py")
OURS = (
    "import gar, json\n"
    "seen = gar.resources()\n"
    "print(json.dumps({'devices': [d._asdict() for d in seen.devices], 'warning': seen.warning}))\n"
)


def run(command, visible, order="PCI_BUS_ID"):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    if order is not None:
        environment["CUDA_DEVICE_ORDER"] = order
    done = subprocess.run(
        [sys.executable, *command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def cuda(visible, *arguments, order="PCI_BUS_ID"):
    seen = run([str(PROBE), *arguments], visible, order)
    assert "error" not in seen, seen
    return seen["devices"]


def ours(visible, order="PCI_BUS_ID"):
    return run(["-c", OURS], visible, order)["devices"]


def plain(uuid):
    """Without "GPU-" or "MIG-"."""
    return uuid.split("-", 1)[1] if uuid[:4] in ("GPU-", "MIG-") else uuid


@pytest.fixture(scope="module")
def machine():
    """UUIDs of all devices in PCI order; skips where there is none."""
    seen = run([str(PROBE)], None)
    if "error" in seen:
        pytest.skip(f"no CUDA here: {seen['error']}")
    if not seen["devices"]:
        pytest.skip("CUDA finds no device")
    return [device["uuid"] for device in seen["devices"]]


def rules(uuids):
    """Values of CUDA_VISIBLE_DEVICES, with what each tries. None: unset."""
    count = len(uuids)
    last = count - 1
    yield "unset", None
    yield "empty", ""
    yield "blank", " "
    yield "all", ",".join(str(i) for i in range(count))
    yield "reversed", ",".join(str(i) for i in reversed(range(count)))
    yield "minus one", "-1"
    yield "minus one in the middle", f"0,-1,{last}"
    yield "a word", "NoDevFiles"
    yield "blanks around", f" 0 , {last} " if count > 1 else " 0 "
    yield "junk behind digits", "0gpu"
    yield "plus sign", "+0"
    yield "minus zero", "-0"
    yield "leading zeros", "00"
    yield "twice", "0,0"
    yield "out of range", str(count)
    yield "out of range behind a good one", f"0,{count}"
    yield "trailing comma", "0,"
    yield "leading comma", ",0"
    yield "two commas", f"0,,{last}"
    yield "uuid", f"GPU-{uuids[0]}"
    yield "uuid prefix", f"GPU-{uuids[0][:8]}"
    yield "uuid in capitals", f"GPU-{uuids[0].upper()}"
    yield "lower-case word", f"gpu-{uuids[0]}"
    yield "uuid twice", f"GPU-{uuids[0]},GPU-{uuids[0][:8]}"
    yield "unknown uuid", "GPU-ffffffff-ffff-ffff-ffff-ffffffffffff"
    yield "unknown uuid behind a good one", f"GPU-{uuids[0]},GPU-ffffffff-ffff-ffff-ffff-ffffffffffff"
    yield "uuid, then ordinal", f"GPU-{uuids[0]},{last}"
    yield "ordinal, then uuid", f"0,GPU-{uuids[last]}"
    yield "blank before a uuid", f" GPU-{uuids[0]}"
    yield "empty prefix", "GPU-"


def test_every_rule(machine):
    """All rules, so that one run on a rare machine tells about each of them."""
    faults = []
    for name, visible in rules(machine):
        want = [device["uuid"] for device in cuda(visible)]
        got = [plain(device["uuid"]) for device in ours(visible)]
        if want != got:
            faults.append(f"{name} ({visible!r}): CUDA sees {want}, gar {got}")
    assert not faults, "\n".join(faults)


def test_counts_without_pci_order(machine):
    for visible in (None, "0", ",".join(str(i) for i in range(len(machine)))):
        assert len(cuda(visible, order=None)) == len(ours(visible, order=None))


def test_memory_figures(machine):
    for theirs, mine in zip(cuda(None), ours(None), strict=True):
        # NVML counts what the driver keeps for itself.
        assert theirs["memory_bytes"] <= mine["memory_bytes"] <= theirs["memory_bytes"] * 1.1
        assert mine["model"]
        assert mine["vendor"] == "nvidia"


def test_each_name_is_its_device(machine):
    """The placement of an actor: a process with one name sees that device, and can use it."""
    for device in ours(None):
        seen = cuda(device["name"], "--use")
        assert [one["uuid"] for one in seen] == [plain(device["uuid"])]
        assert seen[0]["works"] is True
    assert cuda("") == []


def test_looking_does_not_start_cuda(machine):
    """No context, no descriptor of the driver and no library of CUDA's in the process that looked."""
    code = (
        "import gar, os\n"
        "assert gar.resources().devices\n"
        "maps = open('/proc/self/maps').read()\n"
        "assert 'libcuda' not in maps\n"
        "files = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n.isdigit()"
        " and os.path.exists(f'/proc/self/fd/{n}')]\n"
        "print([f for f in files if 'nvidia' in f])\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
