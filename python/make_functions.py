# SPDX-License-Identifier: Apache-2.0
"""Write gar/_methods.py and gar/functions.py: the functions of the registry as methods and as functions.

Usage: make_functions.py FOLDER
"""

import keyword
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
sys.dont_write_bytecode = True

import make_reference  # noqa: E402

# Written by hand in expressions.py, with Python's own way of giving the arguments.
BY_HAND = {"when", "interval"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""{title} Made from the function registry; do not edit."""

from __future__ import annotations

'''
METHODS_HEAD = '''from gar import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gar.expressions import Expression, IntoExpr

_call = _native.call


class ExpressionMethods(_native.Expression):
    """Every function of the engine as a method of its first argument."""

    __slots__ = ()
'''
FUNCTIONS_HEAD = """from gar import _native
from gar.expressions import interval, when
from gar.window import monotonically_increasing_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gar.expressions import Expression, IntoExpr

_call = _native.call
"""


class Parameter:
    """One parameter of a signature: 'digits: integer = 0'."""

    def __init__(self, text, is_optional):
        self.is_variadic = text == "..."
        self.is_literal = ": literal " in text
        name = re.split(r"[:=]", text)[0].strip()
        self.name = f"{name}_" if keyword.iskeyword(name) else name
        self.is_optional = is_optional or "=" in text


def parse(signature, least):
    """The parameters of 'round(a, digits: integer = 0) -> type of a'."""
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    texts = [text.strip() for text in inside.split(",")] if inside else []
    return [Parameter(text, is_optional=i >= least and text != "...") for i, text in enumerate(texts)]


def declare(parameters):
    """The parameters after the first as Python declares them."""
    words = []
    for p in parameters:
        if p.is_variadic:
            words.append("*others: IntoExpr")
        elif p.is_optional:
            words.append(f"{p.name}: IntoExpr | None = None")
        else:
            words.append(f"{p.name}: IntoExpr")
    return ", ".join(words)


def body(name, parameters, indent):
    """The statements that make the call; optional arguments left out at the end are not passed."""
    lines = []
    given = []
    for i, p in enumerate(parameters):
        if p.is_optional:
            passed = ", ".join([f'"{name}"', *given])
            left_out = " and ".join(f"{q.name} is None" for q in parameters[i:] if q.is_optional)
            lines.append(f"{indent}if {left_out}:")
            lines.append(f"{indent}    return _call({passed})")
        given.append("*others" if p.is_variadic else p.name)
    lines.append(f"{indent}return _call({', '.join([repr_name(name), *given])})")
    return lines


def repr_name(name):
    return f'"{name}"'


def docstring(signature, summary, indent):
    text = summary.replace("\\", "\\\\").replace('"""', "'''")
    if text.endswith('"'):
        text += " "
    return [f'{indent}"""{text}', "", f"{indent}{signature.replace(chr(92), chr(92) * 2)}", f'{indent}"""']


def method(name, signature, summary, least):
    """Lines of one method; none when the function has no column to be called on."""
    parameters = parse(signature, least)
    own = next((p for p in parameters if not p.is_literal and not p.is_variadic), None)
    if own is None:
        return []
    others = [p for p in parameters if p is not own]
    declared = ", ".join(text for text in ("self", declare(others)) if text)
    own.name = "self"
    own.is_optional = False
    lines = [f"    def {name}({declared}) -> Expression:"]
    lines += docstring(signature, summary, " " * 8)
    lines += body(name, parameters, " " * 8)
    return [*lines, ""]


def function(name, signature, summary, least):
    parameters = parse(signature, least)
    lines = [f"def {name}({declare(parameters)}) -> Expression:"]
    lines += docstring(signature, summary, " " * 4)
    lines += body(name, parameters, " " * 4)
    return [*lines, "", ""]


def least_arguments(signature):
    """How many arguments must be given: those without a default; count() needs none."""
    if signature.startswith("count("):
        return 0
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    return sum(1 for text in inside.split(",") if "=" not in text and text.strip() != "...")


def main(folder):
    functions, aliases = make_reference.read_registry(ROOT)
    methods = []
    plain = []
    names = ["interval", "monotonically_increasing_id", "when"]
    for name, _, _, _, signature, summary in functions:
        if keyword.iskeyword(name) or name in BY_HAND:
            continue
        least = least_arguments(signature)
        methods += method(name, signature, summary, least)
        plain += function(name, signature, summary, least)
        names.append(name)
        for alias in aliases.get(name, []):
            if methods and not keyword.iskeyword(alias):
                methods += [f"    {alias} = {name}", ""]
                plain += [f"{alias} = {name}", "", ""]
                names.append(alias)
    with open(os.path.join(folder, "_methods.py"), "w", encoding="utf8") as file:
        file.write(HEAD.format(title="Functions as methods of expressions.") + METHODS_HEAD + "\n")
        file.write("\n".join(methods).rstrip("\n") + "\n")
    with open(os.path.join(folder, "functions.py"), "w", encoding="utf8") as file:
        file.write(HEAD.format(title="Functions of expressions.") + FUNCTIONS_HEAD + "\n__all__ = [\n")
        file.writelines(f'    "{name}",\n' for name in sorted(names))
        file.write("]\n\n\n" + "\n".join(plain).rstrip("\n") + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
