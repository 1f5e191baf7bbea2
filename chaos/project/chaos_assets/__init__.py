"""Assets that make load: chains, fans, partitions, checks, failures, children and much output."""

from chaos_assets import days, fan, trouble

__all__ = ["days", "fan", "trouble"]
