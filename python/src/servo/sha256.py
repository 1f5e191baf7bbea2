"""SHA-256 of what is small, without OpenSSL: to load that takes longer than to digest a whole project."""

from __future__ import annotations

try:
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256

_SMALL = 64 * 1024


def sha256_hex(data: bytes) -> str:
    """Give the SHA-256 of bytes in lower-case hexadecimal.

    >>> sha256_hex(b"")[:8], sha256_hex(bytes(100_000))[:8]
    ('e3b0c442', '9192c25b')
    """
    if len(data) <= _SMALL:
        return str(sha256(data).hexdigest())
    import hashlib  # noqa: PLC0415 - as said; it is several times as fast

    return hashlib.sha256(data).hexdigest()
