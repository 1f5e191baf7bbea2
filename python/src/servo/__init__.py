"""Servo keeps data assets up to date.

This package needs nothing but the standard library, and importing it has no side effects.

>>> from servo.keys import AssetKey
>>> AssetKey.parse("analytics.delays").canonical
'analytics/delays'
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
