# SPDX-License-Identifier: Apache-2.0
"""Write docs/functions.md, the reference of expression functions, from the registry in src/expr/functions.def.

Usage: make_reference.py [--check]      --check only says whether the page is up to date (exit status 1 when not)
"""

import ast
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "functions.md")
PROGRAM = """
#define NULL None
#define GAR_FUNCTION(id, name, sql, group, kind, min, max, bind, signature, summary) \\
    @function (name, sql, group, #kind, signature, summary)
#define GAR_FUNCTION_ALIAS(alias, name) @alias (alias, name)
#include "expr/functions.def"
"""
INTRO = """# Expression functions

Made from the function registry by `tools/make_reference.py`; do not edit. The name is that of `gar_expr_call` in C, of the method or function in
Python and of the function in SQL expressions, where an operator or another spelling may stand beside it. Unless a line says otherwise the result is null
where an argument is null.
"""


def read_registry(root=ROOT):
    """([(name, sql, group, kind, signature, summary)], {name: [alias]}) in the order of the file."""
    text = subprocess.run(
        ["gcc", "-E", "-P", "-x", "c", "-I", os.path.join(root, "src"), "-"],
        input=PROGRAM,
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    functions, aliases = [], {}
    for part in text.split("@")[1:]:
        word, _, rest = part.partition(" ")
        row = ast.literal_eval(rest.strip())
        if word == "function":
            functions.append(row)
        else:
            aliases.setdefault(row[1], []).append(row[0])
    return functions, aliases


def cell(text):
    return text.replace("|", "\\|")


def page(functions, aliases):
    groups = {}
    for row in functions:
        groups.setdefault(row[2], []).append(row)
    lines = [INTRO]
    for group, rows in groups.items():
        lines += [f"## {group.capitalize()}", "", "| function | SQL | meaning |", "|---|---|---|"]
        for name, sql, _, _, signature, summary in rows:
            also = "".join(f" Also `{alias}`." for alias in aliases.get(name, []))
            spelled = f"`{cell(sql)}`" if sql else ""
            lines.append(f"| `{cell(signature)}` | {spelled} | {cell(summary)}{also} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def main(argv):
    text = page(*read_registry())
    if "--check" in argv:
        current = ""
        if os.path.exists(PAGE):
            with open(PAGE, encoding="utf8") as file:
                current = file.read()
        if current != text:
            print("docs/functions.md is not what the registry says; run tools/make_reference.py")
            return 1
        print("reference: ok")
        return 0
    with open(PAGE, "w", encoding="utf8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
