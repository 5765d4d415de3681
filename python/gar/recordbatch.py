# SPDX-License-Identifier: Apache-2.0
"""Record batches: some rows of a result."""

from __future__ import annotations

from gar import _native
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
        names = self.column_names()
        if name not in names:
            raise _native.GarColumnError(f"unknown column '{name}' (columns: {', '.join(names)})")
        return Series(name, self._array.fields()[names.index(name)])

    def to_pydict(self) -> dict[str, list[Any]]:
        return dict(zip(self.column_names(), self._array.field_lists(), strict=True))

    def to_pylist(self) -> list[dict[str, Any]]:
        return _rows(self.column_names(), self._array.field_lists(), len(self))

    def to_arrow(self) -> Any:
        import pyarrow

        return pyarrow.record_batch(self)

    to_arrow_record_batch = to_arrow

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()

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
