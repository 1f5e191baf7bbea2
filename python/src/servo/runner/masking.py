"""Secrets in texts, replaced by `***` however they are written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK: Final = "***"

# Shorter texts are found by chance: in other forms than the value itself they are not looked for.
_LONG_ENOUGH: Final = 4
_LONG_ENOUGH_IN_BASE64: Final = 6


class Mask:
    """Replaces secrets.

    >>> mask = Mask(["hunter2&co"])
    >>> mask.text("curl -u me:hunter2&co -d p=hunter2%26co -H aHVudGVyMiZjbw==")
    'curl -u me:*** -d p=*** -H ***=='
    >>> mask.json({"url": ["hunter2&co", 7]})
    {'url': ['***', 7]}
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Take the secrets."""
        found = {form for value in values for form in _forms(value)}
        # Whatever contains another form is replaced first, so that nothing of it is left over.
        self.forms: Final = sorted(found, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, self.forms))) if self.forms else None

    def text(self, text: str) -> str:
        """Replace the secrets in a text."""
        return text if self._pattern is None else self._pattern.sub(MASK, text)

    def json(self, value: object) -> object:
        """Replace the secrets in a JSON value, also where they are numbers or names."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(name)): self.json(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(each) for each in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and self.text(repr(value)) == MASK:
            return MASK
        return value

    def json_text(self, text: str) -> str:
        r"""Replace the secrets in a text of JSON, which stays JSON.

        >>> Mask(['a"b"c']).json_text(r'["a\"b\"c"]')
        '["***"]'
        """
        if self._pattern is None or self._pattern.search(text) is None:
            return text
        import json  # noqa: PLC0415 - only where there is something to replace

        masked = json.dumps(self.json(json.loads(text)), ensure_ascii=False)
        return masked if self._pattern.search(masked) is None else json.dumps(self.text(masked))


def _forms(value: str) -> Iterable[str]:
    """Give the texts that a secret may appear as."""
    if not value:
        return
    yield value
    # Output is captured line by line, and a key in a file has many.
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) > _LONG_ENOUGH)
    if len(value) < _LONG_ENOUGH:
        return
    import json  # noqa: PLC0415 - only for tasks with secrets, as below
    from urllib.parse import quote, quote_plus  # noqa: PLC0415

    data = value.encode(errors="surrogateescape")
    yield from {quote(data, safe=""), quote(data), quote_plus(data)}
    yield from {json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]}
    yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterable[str]:
    """Give what is in base64 of anything that contains the data, wherever in it that is.

    >>> import base64
    >>> any(form in base64.b64encode(b"me:hunter2!").decode() for form in _base64_forms(b"hunter2"))
    True
    """
    import base64  # noqa: PLC0415 - as above

    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode().rstrip("=")
        # The first and the last character may also hold bits of what is around.
        start = (before * 8 + 5) // 6
        end = len(encoded) if (before + len(data)) % 3 == 0 else len(encoded) - 1
        form = encoded[start:end]
        if before == 0 and len(encoded) >= _LONG_ENOUGH:
            yield from {encoded, encoded.replace("+", "-").replace("/", "_")}
        if len(form) >= _LONG_ENOUGH_IN_BASE64:
            yield from {form, form.replace("+", "-").replace("/", "_")}
