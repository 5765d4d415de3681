# SPDX-License-Identifier: Apache-2.0
"""Record batches: some rows of a result."""

from __future__ import annotations

from gar import _checks, _native
from gar.schema import Schema
from gar.series import Series

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RecordBatch:
    """Some rows of a result, in memory."""

    __module__ = "gar"
    __slots__ = ("_array",)

    def __init__(self, array: _native.Array) -> None:
        if not isinstance(array, _native.Array) or not isinstance(_native.schema_types(array), list):
            raise _native.GarTypeError("record batches are made by iter_partitions")
        self._array = array

    def schema(self) -> Schema:
        return Schema.from_pyarrow_schema(self._array)

    def column_names(self) -> list[str]:
        return [name for name, _, _ in _native.schema_types(self._array)]

    def columns(self) -> list[Series]:
        return [
            Series(name, array) for name, array in zip(self.column_names(), self._array.fields(), strict=True)
        ]

    def get_column(self, name: str) -> Series:
        """A column by its name."""
        names = self.column_names()
        if _checks.text("a column name", name) not in names:
            raise _native.GarColumnError(f"unknown column '{name}' (columns: {', '.join(names)})")
        return Series(name, self._array.fields()[names.index(name)])

    def to_pydict(self) -> dict[str, list[Any]]:
        return dict(zip(self.column_names(), self._array.field_lists(), strict=True))

    def to_pylist(self) -> list[dict[str, Any]]:
        return _rows(self.column_names(), self._array.field_lists(), len(self))

    def to_arrow(self) -> Any:
        """As a pyarrow record batch."""
        return _checks.foreign(_checks.package("pyarrow", "to_arrow").record_batch, self)

    to_arrow_record_batch = to_arrow

    def to_pandas(self) -> Any:
        """As a pandas frame."""
        _checks.package("pandas", "to_pandas")
        return _checks.foreign(self.to_arrow().to_pandas)

    def num_rows(self) -> int:
        return len(self._array)

    def __len__(self) -> int:
        return len(self._array)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._array.__arrow_c_array__()

    def __arrow_c_schema__(self) -> object:
        return self._array.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"RecordBatch({len(self)} rows)\n{self.schema()!r}"


def _rows(names: list[str], columns: list[list[Any]], count: int) -> list[dict[str, Any]]:
    """Columns as a list of dicts."""
    if not columns:
        return [{} for _ in range(count)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
