"""Assets that make load: chains, fans, partitions, checks, failures, children and much output."""

from . import days, fan, trouble

__all__ = ["days", "fan", "trouble"]
