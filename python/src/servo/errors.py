"""Errors that say what is wrong with a value, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from servo.location import Location

_SHOWN_CHARACTERS = 80


class ParseError(ValueError):
    """A text is not a valid value: which kind of value, what was wrong, and at which character.

    >>> str(ParseError("asset key", "a.1", 2, "a name starts with a letter"))
    'invalid asset key "a.1" at character 2: a name starts with a letter'
    """

    def __init__(self, what: str, text: str, at: int, problem: str) -> None:
        """Remember the kind of value, its text (cut to 80 characters), where it is wrong, and how."""
        self.what = what
        self.text = text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
        self.at = at
        self.problem = problem
        super().__init__(f'invalid {what} "{_escape(self.text)}" at character {at}: {problem}')


class CanonicalError(ValueError):
    """A value has no canonical JSON. `path` names the culprit, such as `$.a[3].b`; `reason` is one word.

    Reasons are `float`, `integer_range`, `duplicate_key`, `key`, `depth`, `type`, `unicode` and `syntax`.

    >>> str(CanonicalError("$.a", "float", "1.5 is a float"))
    'no canonical JSON: at $.a: 1.5 is a float'
    """

    def __init__(self, path: str, reason: str, problem: str) -> None:
        """Remember where the culprit is, the reason as one word, and as a sentence."""
        self.path = path
        self.reason = reason
        self.problem = problem
        super().__init__(f"no canonical JSON: at {path}: {problem}")


def unexpected(text: str, at: int, expected: str) -> str:
    """Say what is wrong with the character at a position, or that the text ended there.

    >>> unexpected("ab", 1, "a digit")
    "found 'b', expected a digit"
    """
    if at >= len(text):
        return f"it ends here, expected {expected}"
    return f"found '{_escape(text[at])}', expected {expected}"


def _escape(text: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character.encode("unicode_escape").decode("ascii")


class DeclarationError(TypeError):
    """A declaration cannot be used; `location` is where it stands, `problem` what to change.

    >>> from servo.location import Location
    >>> str(DeclarationError(Location("/project/flights.py", 12), "no asset is named raw.flights"))
    '/project/flights.py:12: no asset is named raw.flights'
    """

    def __init__(self, location: Location, problem: str) -> None:
        """Remember the place and the problem."""
        self.location = location
        self.problem = problem
        super().__init__(f"{location}: {problem}")
