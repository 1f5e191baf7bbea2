"""Values and the annotations that speak of them: checked as they leave a function, made as they come in.

>>> problem(3, int) is None
True
>>> problem({"rows": "3"}, dict[str, int])
"['rows'] is the text '3', not an int"
"""

from __future__ import annotations

from servo.typed.checks import ANYTHING, of_text, problem
from servo.typed.conversion import Refused, convert
from servo.typed.results import of_output

__all__ = ["ANYTHING", "Refused", "convert", "of_output", "of_text", "problem"]
