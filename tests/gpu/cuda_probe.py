# SPDX-License-Identifier: Apache-2.0
"""Run in a process of its own: what CUDA sees, as JSON, through the driver API and ctypes.

{"error": text} or {"devices": [{"uuid", "memory_bytes", "works"}]}; `works` is tried with --use.
"""

import ctypes
import json
import os
import sys


def check(code, what):
    if code != 0:
        raise RuntimeError(f"{what} gives {code}")


def use_device(cuda, device):
    """Take a context, fill a megabyte on the device, read it back."""
    context = ctypes.c_void_p()
    memory = ctypes.c_uint64()
    size = 1 << 20
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    check(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(size)), "cuMemAlloc_v2")
    check(cuda.cuMemsetD8_v2(memory, ctypes.c_ubyte(0x5A), ctypes.c_size_t(size)), "cuMemsetD8_v2")
    host = ctypes.create_string_buffer(size)
    check(cuda.cuMemcpyDtoH_v2(host, memory, ctypes.c_size_t(size)), "cuMemcpyDtoH_v2")
    check(cuda.cuMemFree_v2(memory), "cuMemFree_v2")
    return host.raw == b"\x5a" * size


def uuid_of(cuda, device):
    raw = (ctypes.c_ubyte * 16)()
    name = "cuDeviceGetUuid_v2" if hasattr(cuda, "cuDeviceGetUuid_v2") else "cuDeviceGetUuid"
    check(getattr(cuda, name)(raw, device), name)
    text = bytes(raw).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def probe(use):
    cuda = ctypes.CDLL(os.environ.get("GAR_TEST_LIBCUDA", "libcuda.so.1"))
    no_device = 100
    code = cuda.cuInit(0)
    if code == no_device:
        return []
    check(code, "cuInit")
    count = ctypes.c_int()
    check(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    devices = []
    for i in range(count.value):
        device = ctypes.c_int()
        memory = ctypes.c_size_t()
        check(cuda.cuDeviceGet(ctypes.byref(device), i), "cuDeviceGet")
        check(cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device), "cuDeviceTotalMem_v2")
        devices.append(
            {
                "uuid": uuid_of(cuda, device),
                "memory_bytes": memory.value,
                "works": use_device(cuda, device) if use else None,
            }
        )
    return devices


if __name__ == "__main__":
    try:
        print(json.dumps({"devices": probe("--use" in sys.argv)}))
    except (OSError, AttributeError, RuntimeError) as error:
        print(json.dumps({"error": str(error)}))
