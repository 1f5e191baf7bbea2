"""Libraries that a project may or may not have installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from servo.storage.errors import MissingLibrary

if TYPE_CHECKING:
    from types import ModuleType

_EXTRAS: Final = {"pyarrow": "arrow", "pandas": "pandas", "polars": "polars", "duckdb": "duckdb"}


def needed(library: str, why: str) -> ModuleType | Any:  # noqa: ANN401 - some libraries have no types
    """Import a library, or say what to install.

    >>> needed("json", "reads JSON").__name__
    'json'
    >>> needed("no_such_library", "reads flights")
    Traceback (most recent call last):
    servo.storage.errors.MissingLibrary: no_such_library is not installed, which reads flights: install it \
with `pip install no_such_library`
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != library:
            raise
        package = library.partition(".")[0]
        extra = _EXTRAS.get(package)
        install = f"servo-orchestrator[{extra}]" if extra else package
        shown = f"'{install}'" if extra else install
        raise MissingLibrary(
            f"{package} is not installed, which {why}: install it with `pip install {shown}`"
        ) from None
