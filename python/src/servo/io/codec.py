"""Values that functions of the user make into bytes, and out of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from servo.arguments import wrong
from servo.partition import typed
from servo.partition_key import PartitionKey
from servo.storage.manager import InputContext, IOManager, OutputContext

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE = "data.bin"


class Bytes(IOManager):
    """Stores a value as the bytes that a function makes of it, in the directory of its materialization.

    Nothing is pickled unless the functions do: take ones that read back data and not code, such as those of
    ONNX, safetensors or skops.

    >>> import tempfile
    >>> from servo.storage import Piece
    >>> models = Bytes(dump=str.encode, load=bytes.decode)
    >>> place = tempfile.mkdtemp()
    >>> models.store(OutputContext("ml/model", None, "01J8", place), "weights")
    >>> models.load(InputContext("ml/model", [Piece(None, place, "io", "01J8")], single=True))
    'weights'
    """

    def __init__(self, *, dump: Callable[[Any], bytes], load: Callable[[bytes], Any]) -> None:
        """Take the function that makes bytes of a value, and the one that makes a value of them."""
        for argument, function in (("dump", dump), ("load", load)):
            if not callable(function):
                raise wrong(f"Bytes({argument}=)", function, "a function")
        self._dump = dump
        self._load = load

    def store(self, ctx: OutputContext, value: Any) -> None:  # noqa: ANN401 - whatever functions return
        """Write the bytes of a value."""
        made: object = self._dump(value)
        if not isinstance(made, bytes | bytearray | memoryview):
            raise wrong("what dump= returns: Servo", made, "bytes")
        with open(os.path.join(ctx.directory, _FILE), "wb") as file:
            file.write(made)

    def load(self, ctx: InputContext) -> object:
        """Read one value, or a dict of them by partition."""
        found: dict[str, object] = {}
        for piece in ctx.pieces:
            with open(os.path.join(ctx.directory(piece), _FILE), "rb") as file:
                value: object = self._load(file.read())
            if ctx.single:
                return value
            found["" if piece.partition is None else typed(PartitionKey(piece.partition))] = value
        return found
