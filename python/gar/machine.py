# SPDX-License-Identifier: Apache-2.0
"""What functions and classes ask of the machine, and what the machine has."""

from __future__ import annotations

from typing import NamedTuple

from gar import _checks, _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_SHARES = 10000  # amounts are counted in 1/10000, rounded down


class ResourceRequest:
    """CPUs, GPUs, memory and GPU memory that one actor or one call of a function needs.

    num_cpus may be any fraction. num_gpus up to 1 is a share of one device, above 1 it must be a whole number.
    memory_bytes and gpu_memory take bytes or a text such as "6GiB"; gpu_memory is meant on each device, alone it
    asks for a device with that much memory that nobody has booked. What is not given books nothing.

    Amounts are checked here: errors are ValueErrors (TypeErrors for what is no number). Requests are immutable,
    compare by value, can be pickled, added (`+`) and multiplied (`*`).
    """

    __module__ = "gar"
    __slots__ = ("_fields",)
    _fields: tuple[int, int, int, int]

    def __init__(
        self,
        num_cpus: float | None = None,
        num_gpus: float | None = None,
        memory_bytes: int | str | None = None,
        gpu_memory: int | str | None = None,
    ) -> None:
        fields = _checks.foreign(_native.request_make, num_cpus, num_gpus, memory_bytes, gpu_memory)
        object.__setattr__(self, "_fields", fields)

    @classmethod
    def _of(cls, fields: tuple[int, int, int, int]) -> ResourceRequest:
        made = object.__new__(cls)
        object.__setattr__(made, "_fields", _native.request_check(fields))
        return made

    @property
    def num_cpus(self) -> float | None:
        return _amount(self._fields[0])

    @property
    def num_gpus(self) -> float | None:
        return _amount(self._fields[1])

    @property
    def memory_bytes(self) -> int | None:
        return _given(self._fields[2])

    @property
    def gpu_memory_bytes(self) -> int | None:
        return _given(self._fields[3])

    def with_num_cpus(self, num_cpus: float | None) -> ResourceRequest:
        """The same request with other CPUs; None: not asked."""
        return self._with(0, ResourceRequest(num_cpus=num_cpus))

    def with_num_gpus(self, num_gpus: float | None) -> ResourceRequest:
        return self._with(1, ResourceRequest(num_gpus=num_gpus))

    def with_memory_bytes(self, memory_bytes: int | str | None) -> ResourceRequest:
        return self._with(2, ResourceRequest(memory_bytes=memory_bytes))

    def with_gpu_memory(self, gpu_memory: int | str | None) -> ResourceRequest:
        return self._with(3, ResourceRequest(gpu_memory=gpu_memory))

    def _with(self, at: int, other: ResourceRequest) -> ResourceRequest:
        fields = list(self._fields)
        fields[at] = other._fields[at]
        return ResourceRequest._of((fields[0], fields[1], fields[2], fields[3]))

    def override(self, other: ResourceRequest) -> ResourceRequest:
        """The fields that `other` asks over this one's; the others stay."""
        return ResourceRequest._of(_native.request_override(self._fields, other._fields))

    @staticmethod
    def max_resources(requests: Iterable[ResourceRequest]) -> ResourceRequest:
        """Field by field, the largest; of no request at all: nothing asked."""
        fields = ResourceRequest()._fields
        for request in requests:
            fields = _native.request_max(fields, request._fields)
        return ResourceRequest._of(fields)

    def __add__(self, other: object) -> ResourceRequest:
        if not isinstance(other, ResourceRequest):
            return NotImplemented
        return ResourceRequest._of(_native.request_sum(self._fields, other._fields))

    def __mul__(self, factor: object) -> ResourceRequest:
        if not isinstance(factor, int) or isinstance(factor, bool):
            return NotImplemented
        return ResourceRequest._of(_native.request_multiply(self._fields, factor))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResourceRequest) and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return (ResourceRequest._of, (self._fields,))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a ResourceRequest cannot change; use with_{name}")

    def __repr__(self) -> str:
        return (
            f"ResourceRequest(num_cpus={self.num_cpus}, num_gpus={self.num_gpus}, "
            f"memory_bytes={self.memory_bytes}, gpu_memory={self.gpu_memory_bytes})"
        )

    def __str__(self) -> str:
        return _native.request_text(self._fields)


def _given(value: int) -> int | None:
    return None if value < 0 else value


def _amount(shares: int) -> float | None:
    return None if shares < 0 else shares / _SHARES


class Device(NamedTuple):
    """A GPU, or a slice of a split one, and what is free on it."""

    name: str  # as processes see it in CUDA_VISIBLE_DEVICES
    uuid: str  # "": not known
    model: str
    vendor: str  # "nvidia", "amd", "unknown"
    memory_bytes: int | None  # None: not known
    free_share: float  # of 1.0
    free_memory_bytes: int | None
    is_slice: bool
    set_aside: str | None  # why nothing more is given from it


class Holder(NamedTuple):
    """Who holds resources, or waits for them."""

    name: str
    process_id: int  # 0: none
    actors: int  # asked for together; 1 for who holds
    request: ResourceRequest
    devices: tuple[str, ...]


class Resources(NamedTuple):
    """A snapshot of the machine's resources; print it for a table."""

    num_cpus: float
    free_cpus: float
    memory_bytes: int
    free_memory_bytes: int
    devices: tuple[Device, ...]
    holders: tuple[Holder, ...]
    waiting: tuple[Holder, ...]
    warning: str  # what went wrong when devices were looked for
    table: str

    def __str__(self) -> str:
        return self.table


def _holder(entry: dict[str, Any]) -> Holder:
    request = ResourceRequest(
        entry["num_cpus"], entry["num_gpus"], entry["memory_bytes"], entry["gpu_memory_bytes"]
    )
    return Holder(entry["name"], entry["process_id"], entry["count"], request, tuple(entry["devices"]))


def resources(look_again: bool = False) -> Resources:
    """What this process may use of the machine, which devices there are, who holds what, and who waits.

    The first call looks for devices, without starting CUDA: CUDA_VISIBLE_DEVICES as it is then counts. look_again asks
    the driver which of them are still there; the others are set aside.
    """
    import json

    seen = json.loads(_native.resources(True, _checks.flag("look_again", look_again)))
    return Resources(
        num_cpus=float(seen["num_cpus"]),
        free_cpus=float(seen["free_cpus"]),
        memory_bytes=seen["memory_bytes"],
        free_memory_bytes=seen["free_memory_bytes"],
        devices=tuple(
            Device(**{**entry, "free_share": float(entry["free_share"])}) for entry in seen["devices"]
        ),
        holders=tuple(_holder(entry) for entry in seen["holders"]),
        waiting=tuple(_holder(entry) for entry in seen["waiting"]),
        warning=seen["warning"],
        table=_native.resources(False, False),
    )


def set_device_aside(device: str, reason: str = "set aside by hand") -> None:
    """Take a device out of use: who holds it keeps it, nobody gets it anew. Its name as in resources().devices."""
    _native.set_aside(_checks.text("device", device), _checks.text("reason", reason))


def restore_device(device: str) -> None:
    """Take a device that was set aside, by hand or because it failed, back into use."""
    _native.set_aside(_checks.text("device", device), None)
