"""Assets that make load: chains, fans, partitions, checks, failures, children and much output.

Modules that automate are beside these, and are left out where nobody would carry out what they ask for.
"""

from . import days, fan, trouble

__all__ = ["days", "fan", "trouble"]
