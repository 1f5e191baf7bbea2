"""JSON as frames have it."""

from __future__ import annotations

from json import JSONEncoder
from typing import Final

encode: Final = JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
"""Writes a value, as short as JSON can be. Made once, since that takes longer than most values."""
