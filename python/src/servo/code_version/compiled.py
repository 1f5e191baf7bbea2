"""The meaning of a function whose source cannot be found, from its compiled code."""

from __future__ import annotations

import types

from servo.code_version.syntax import Meaning


def meaning_of_code(code: types.CodeType, doc: str | None = None) -> Meaning:
    """Give the meaning of code, without its docstring, positions and name.

    >>> one, other = (compile(text, "<text>", "eval") for text in ("x + 1", "(x  +  1)"))
    >>> meaning_of_code(one) == meaning_of_code(other)
    True
    >>> meaning_of_code(one).reads
    frozenset({('x',)})
    """
    constants: list[str] = []
    reads: set[tuple[str, ...]] = {(name,) for name in code.co_names}
    for position, constant in enumerate(code.co_consts):
        if position == 0 and doc is not None and constant == doc:
            constants.append("None")
        elif isinstance(constant, types.CodeType):
            inner = meaning_of_code(constant)
            constants.append(inner.text)
            reads |= inner.reads
        else:
            constants.append(_written(constant))
    parts = (
        code.co_code.hex(),
        code.co_exceptiontable.hex(),
        ",".join(constants),
        ",".join(code.co_names),
        ",".join((*code.co_varnames, "|", *code.co_freevars, "|", *code.co_cellvars)),
        f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} {code.co_flags}",
    )
    return Meaning(f"compiled({' '.join(parts)})", frozenset(reads))


def _written(constant: object) -> str:
    if isinstance(constant, frozenset):
        return f"frozenset({','.join(sorted(map(_written, constant)))})"
    if isinstance(constant, tuple):
        return f"({','.join(map(_written, constant))})"
    if type(constant) is int:
        return hex(constant)
    return repr(constant)
