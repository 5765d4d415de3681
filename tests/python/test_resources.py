# SPDX-License-Identifier: Apache-2.0
"""Resource requests and the machine's resources, over the public API."""

import json
import math
import os
import pickle
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

import gar
from gar import ResourceRequest
from gar.exceptions import GarError, GarTypeError, GarValueError

GIB = 1 << 30

gar.resources()  # the ledger is made at the first call and stays: not before the census of one test


@pytest.mark.parametrize("gpus", [0, 0.5, 1, 1.0, 2, 8, 0.0001])
def test_legal_gpus(gpus):
    assert ResourceRequest(num_gpus=gpus).num_gpus == gpus


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_gpus": -1}, "num_gpus must be nonnegative, got -1"),
        ({"num_gpus": 1.5}, "num_gpus greater than 1 must be an integer, got 1.5"),
        ({"num_gpus": 0.00001}, "num_gpus must be 0 or at least 0.0001"),
        ({"num_gpus": math.nan}, "num_gpus must be a finite number"),
        ({"num_cpus": -0.5}, "num_cpus must be nonnegative, got -0.5"),
        ({"num_cpus": math.inf}, "num_cpus must be a finite number"),
        ({"memory_bytes": -1}, "memory_bytes must be nonnegative, got -1"),
        ({"memory_bytes": 1 << 70}, "memory_bytes is out of range"),
        ({"memory_bytes": "6 apples"}, "'6 apples' is no amount of memory"),
        ({"gpu_memory": -1}, "gpu_memory must be nonnegative, got -1"),
    ],
)
def test_illegal_amounts(arguments, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")) as caught:
        ResourceRequest(**arguments)
    assert isinstance(caught.value, GarError)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_gpus": "1"},
        {"num_cpus": True},
        {"memory_bytes": 1.5},
        {"memory_bytes": True},
        {"gpu_memory": []},
    ],
)
def test_wrong_types(arguments):
    with pytest.raises(GarTypeError, match=next(iter(arguments))):
        ResourceRequest(**arguments)


def test_memory_texts():
    assert ResourceRequest(memory_bytes="6GiB").memory_bytes == 6 * GIB
    assert ResourceRequest(gpu_memory="1.5 gb").gpu_memory_bytes == 1_500_000_000
    assert ResourceRequest(memory_bytes=7).memory_bytes == 7


def test_values():
    request = ResourceRequest(num_cpus=1.5, num_gpus=0.25, memory_bytes=GIB)
    assert (request.num_cpus, request.num_gpus, request.memory_bytes, request.gpu_memory_bytes) == (
        1.5,
        0.25,
        GIB,
        None,
    )
    assert request == ResourceRequest(1.5, 0.25, "1GiB")
    assert hash(request) == hash(ResourceRequest(1.5, 0.25, GIB))
    assert request != ResourceRequest(1.5, 0.25)
    assert ResourceRequest(num_cpus=0) != ResourceRequest()
    assert request != "a text"
    assert repr(ResourceRequest(num_gpus=1)) == (
        "ResourceRequest(num_cpus=None, num_gpus=1.0, memory_bytes=None, gpu_memory=None)"
    )
    assert eval(repr(request), {"ResourceRequest": ResourceRequest}) == request
    assert str(request) == "1.5 CPUs, 1.0 GiB of memory, 0.25 GPUs"
    with pytest.raises(AttributeError):
        request.num_cpus = 2


def test_arithmetic():
    half = ResourceRequest(num_gpus=0.5, memory_bytes=10)
    quarter = ResourceRequest(num_cpus=1, num_gpus=0.25)
    assert half + quarter == ResourceRequest(1, 0.75, 10)
    assert half * 2 == 2 * half == ResourceRequest(num_gpus=1, memory_bytes=20)
    assert ResourceRequest.max_resources([half, quarter]) == ResourceRequest(1, 0.5, 10)
    assert ResourceRequest.max_resources([]) == ResourceRequest()
    assert half.override(ResourceRequest(num_gpus=2)) == ResourceRequest(num_gpus=2, memory_bytes=10)
    assert half.with_num_gpus(1).with_num_cpus(3) == ResourceRequest(3, 1, 10)
    assert half.with_memory_bytes(None) == ResourceRequest(num_gpus=0.5)
    assert half.with_gpu_memory("1KiB").gpu_memory_bytes == 1024
    # The check is made where the sum is written.
    three_quarters = ResourceRequest(num_gpus=0.75)
    with pytest.raises(GarValueError, match=r"greater than 1 must be an integer, got 1\.5"):
        three_quarters + three_quarters
    with pytest.raises(GarValueError, match=r"greater than 1 must be an integer, got 1\.5"):
        half * 3
    with pytest.raises(GarValueError, match="greater than 1"):
        half.with_num_gpus(1.5)
    with pytest.raises(TypeError):
        half + 1
    with pytest.raises(TypeError):
        half * 1.5


def test_pickle():
    request = ResourceRequest(1 / 3, 1 / 3, "6GiB", "2GiB")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(request, protocol)) == request
    # What a pickle says is checked again.
    bad = pickle.dumps(request, 2).replace(b"M\x05\x0d", b"M\x98\x3a")  # 3333 -> 15000 shares
    if b"M\x98\x3a" in bad:
        with pytest.raises(GarValueError, match="must be an integer"):
            pickle.loads(bad)


def seen_with(visible, environment=None):
    """resources() of a fresh process, as a dict."""
    code = (
        "import gar, json\n"
        "r = gar.resources()\n"
        "print(json.dumps({'devices': [d._asdict() for d in r.devices], 'cpus': r.num_cpus,"
        " 'warning': r.warning, 'table': str(r)}))"
    )
    env = {name: value for name, value in os.environ.items() if not name.endswith("_VISIBLE_DEVICES")}
    env.pop("CUDA_DEVICE_ORDER", None)
    if visible is not None:
        env["CUDA_VISIBLE_DEVICES"] = visible
    env.update(environment or {})
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def names(seen):
    return [device["name"] for device in seen["devices"]]


@pytest.fixture(scope="module")
def nvml(tmp_path_factory):
    """A folder with the stand-in for libnvidia-ml.so.1, for LD_LIBRARY_PATH."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    library = folder / "libnvidia-ml.so.1"
    source = ROOT / "tests" / "nvml" / "stub.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return lambda mode: {"LD_LIBRARY_PATH": str(folder), "GAR_STUB_NVML": mode}


def test_devices_from_the_variable_and_nvml(nvml):
    assert names(seen_with("2,1,9", nvml("four"))) == ["2", "1"]
    seen = seen_with(None, nvml("four"))
    assert names(seen) == ["0", "1", "2", "3"]
    assert seen["devices"][0]["memory_bytes"] == 80 * GIB
    assert seen["devices"][0]["model"] == "Stub L"
    assert seen["warning"] == ""
    slices = seen_with(None, nvml("mig"))["devices"]
    assert [device["is_slice"] for device in slices] == [False, True, True]
    broken = seen_with(None, nvml("init"))
    assert broken["devices"] == []
    assert "NVML cannot be used" in broken["warning"]
    assert "NVML cannot be used" in broken["table"]
    lost = seen_with(None, nvml("lost"))
    assert names(lost) == ["0", "1", "2"]
    assert lost["warning"] == "GPU 3 is left out: GPU is lost"


def test_names_are_kept_as_written(nvml):
    # The driver is not there: names are believed.
    assert names(seen_with("3,4,5,6", nvml("driver"))) == ["3", "4", "5", "6"]
    assert names(seen_with("GPU-aaaa,GPU-bbbb", nvml("driver"))) == ["GPU-aaaa", "GPU-bbbb"]
    assert names(seen_with("MIG-cccc", nvml("driver"))) == ["MIG-cccc"]
    assert names(seen_with("", nvml("driver"))) == []


def test_cpus_follow_the_affinity(nvml):
    assert seen_with("", nvml("none"))["cpus"] <= (os.cpu_count() or 1)


def test_set_aside_and_restore(nvml):
    code = (
        "import gar\n"
        "gar.set_device_aside('4', 'it smokes')\n"
        "print([d.set_aside for d in gar.resources().devices])\n"
        "assert 'set aside: it smokes' in str(gar.resources())\n"
        "gar.restore_device('4')\n"
        "print([d.set_aside for d in gar.resources().devices])\n"
        "try:\n"
        "    gar.set_device_aside('9')\n"
        "except gar.GarError as error:\n"
        "    print(error)\n"
    )
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "3,4", **nvml("driver")}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[None, 'it smokes']",
        "[None, None]",
        "there is no device '9'; this process has 2",
    ]


def test_devices_that_vanish(nvml):
    code = (
        "import gar\n"
        "assert [d.set_aside for d in gar.resources().devices] == [None] * 4\n"
        "print([d.set_aside for d in gar.resources(look_again=True).devices])\n"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_")}
    env.update(nvml("later"))
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[None, None, None, 'the driver no longer lists it']"


def test_resources_here():
    seen = gar.resources()
    assert seen.num_cpus >= 1
    assert seen.free_cpus == seen.num_cpus
    assert seen.free_memory_bytes == seen.memory_bytes > 0
    assert seen.holders == () == seen.waiting
    assert str(seen).startswith("CPUs free")
