# SPDX-License-Identifier: Apache-2.0
"""Schemas and their fields."""

from __future__ import annotations

from gar import _checks, _native
from gar.datatype import DataType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Field:
    """A named column type."""

    __module__ = "gar"
    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: DataType | str) -> None:
        self.name = _checks.text("a field's name", name)
        self.dtype = DataType._from(dtype)

    @classmethod
    def create(cls, name: str, dtype: DataType | str) -> Field:
        """A field; the type may be text."""
        return cls(name, dtype)

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
        fields = _checks.items("the fields of a schema", fields)
        for field in fields:
            if not isinstance(field, Field):
                raise _native.GarTypeError(f"a schema is made of fields, got {_checks.shown(field)}")
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
        return cls([Field.create(name, dtype) for name, dtype in _checks.pairs("a schema", fields)])

    @classmethod
    def from_field_name_and_types(cls, fields: list[tuple[str, DataType]]) -> Schema:
        """From pairs of name and type."""
        pairs = _checks.items("a schema", fields)
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise _native.GarTypeError(f"expected a pair of name and type, got {_checks.shown(pair)}")
        return cls([Field.create(name, dtype) for name, dtype in pairs])

    @classmethod
    def from_pyarrow_schema(cls, schema: Any) -> Schema:
        """From a pyarrow schema, or anything else with __arrow_c_schema__."""
        fields = _native.schema_types(schema)
        if isinstance(fields, str):
            raise _native.GarTypeError("expected a schema of named columns, got a single type")
        return cls([Field(name, DataType._known(text)) for name, text, _ in fields])

    def to_pyarrow_schema(self) -> Any:
        """As a pyarrow schema."""
        return _checks.foreign(_checks.package("pyarrow", "to_pyarrow_schema").schema, self)

    def __arrow_c_schema__(self) -> object:
        if self._arrow is not None:
            return self._arrow.arrow_schema()
        return _native.schema_from_types([(f.name, str(f.dtype)) for f in self._fields.values()])

    def column_names(self) -> list[str]:
        return list(self._fields)

    def to_name_set(self) -> set[str]:
        return set(self._fields)

    def __getitem__(self, key: str | int) -> Field:
        """A field by name or number."""
        if not isinstance(key, str):
            number = _checks.integer("a field's number", key)
            if not -len(self) <= number < len(self):
                raise _native.GarIndexError(f"field {number} of a schema of {len(self)}")
            return list(self._fields.values())[number]
        if key not in self._fields:
            raise _native.GarColumnError(f"unknown column '{key}' (columns: {', '.join(self._fields)})")
        return self._fields[key]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._fields

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Schema, (list(self),))

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
