"""Errors of stored data, in the user's words."""

from __future__ import annotations


class StorageError(Exception):
    """Data could not be stored or loaded."""


class UnsupportedType(StorageError, TypeError):
    """There is no way to store a value of this type, or to load one for this annotation."""


class MissingInput(StorageError, LookupError):
    """An input of an asset was never materialized."""


class UnreadableInput(StorageError):
    """A file of an input is gone, damaged or not what it should be."""


class IncompatiblePartitions(StorageError):
    """Partitions that are read together have a column with types that have nothing in common."""


class UnsafeName(StorageError, ValueError):
    """A name would lead out of the directory that it is meant for."""


class MissingLibrary(StorageError, ImportError):
    """A library is needed that is not installed."""
