"""The version of a function's code: a digest of what it means, so that it changes when results may change.

It covers the function without comments, layout, docstring and decorators, its defaults, and what it refers
to: values it closes over, globals it reads, and in turn the functions and classes of the project among them.
Of Python and of installed packages it knows only names. The same source has the same version in every process
and on every machine.

>>> import textwrap
>>> code_version(textwrap.dedent)[:7]
'sha256:'
>>> code_version(textwrap.dedent) == code_version(textwrap.indent)
False

What it cannot see: modules imported inside of a function, files it reads, and the state of objects that are
not plain values. Where the source is not to be had, as in a terminal, the compiled code is what counts, and
the version differs between versions of Python.
"""

from __future__ import annotations

from servo.code_version.scope import Scope
from servo.code_version.versions import CodeVersions

__all__ = ["CodeVersions", "Scope", "code_version"]


def code_version(function: object) -> str:
    """Give the version of one function; `CodeVersions` is faster for many.

    >>> code_version(lambda: 1) == code_version(lambda: 1)
    True
    """
    module = getattr(function, "__module__", None)
    return CodeVersions(Scope(packages=[module] if isinstance(module, str) else [])).of(function)
