# SPDX-License-Identifier: Apache-2.0
"""Schemas and their fields."""

from __future__ import annotations

from gar import _native
from gar.datatype import DataType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Field:
    """A named column type."""

    __module__ = "gar"
    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: DataType) -> None:
        self.name = name
        self.dtype = dtype

    @classmethod
    def create(cls, name: str, dtype: DataType | str) -> Field:
        return cls(name, DataType._from(dtype))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and (self.name, self.dtype) == (other.name, other.dtype)

    def __hash__(self) -> int:
        return hash((self.name, self.dtype))

    def __repr__(self) -> str:
        return f"Field({self.name!r}, {self.dtype})"


class Schema:
    """The names and types of a frame's columns."""

    __module__ = "gar"
    __slots__ = ("_arrow", "_fields")

    def __init__(self, fields: list[Field]) -> None:
        self._fields = {field.name: field for field in fields}
        self._arrow: Any = None  # a native frame whose schema has this one's metadata too
        if len(self._fields) != len(fields):
            raise _native.GarValueError("two fields of one name in a schema")

    @classmethod
    def _of(cls, frame: Any) -> Schema:
        names, types = frame.column_names(), frame.column_types()
        made = cls([Field(name, DataType._known(text)) for name, text in zip(names, types, strict=True)])
        made._arrow = frame
        return made

    @classmethod
    def from_pydict(cls, fields: dict[str, DataType | str]) -> Schema:
        """From {name: type}."""
        return cls([Field.create(name, dtype) for name, dtype in fields.items()])

    @classmethod
    def from_field_name_and_types(cls, fields: list[tuple[str, DataType]]) -> Schema:
        return cls([Field.create(name, dtype) for name, dtype in fields])

    @classmethod
    def from_pyarrow_schema(cls, schema: Any) -> Schema:
        """From a pyarrow schema, or anything else with __arrow_c_schema__."""
        fields = _native.schema_types(schema)
        if isinstance(fields, str):
            raise _native.GarTypeError("expected a schema of named columns, got a single type")
        return cls([Field(name, DataType._known(text)) for name, text, _ in fields])

    def to_pyarrow_schema(self) -> Any:
        import pyarrow

        return pyarrow.schema(self)

    def __arrow_c_schema__(self) -> object:
        if self._arrow is not None:
            return self._arrow.arrow_schema()
        return _native.schema_from_types([(f.name, str(f.dtype)) for f in self._fields.values()])

    def column_names(self) -> list[str]:
        return list(self._fields)

    def to_name_set(self) -> set[str]:
        return set(self._fields)

    def __getitem__(self, key: str | int) -> Field:
        if isinstance(key, int):
            return list(self._fields.values())[key]
        if key not in self._fields:
            raise _native.GarColumnError(f"unknown column '{key}' (columns: {', '.join(self._fields)})")
        return self._fields[key]

    def __contains__(self, name: object) -> bool:
        return name in self._fields

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        width = max((len(name) for name in self._fields), default=0)
        lines = [f"{_escape(f.name):<{width}}  {f.dtype}" for f in self._fields.values()]
        return "\n".join(lines) if lines else "(no columns)"


def _escape(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _given(schema: Any) -> tuple[list[str], list[str]]:
    """Names and type texts of a schema that a user gave to a reader: None, a dict or a Schema."""
    if schema is None:
        return [], []
    if isinstance(schema, dict):
        schema = Schema.from_pydict(schema)
    elif not isinstance(schema, Schema):
        schema = Schema.from_pyarrow_schema(schema)
    return schema.column_names(), [str(field.dtype) for field in schema]
