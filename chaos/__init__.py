"""Kills real processes of Servo under load, and looks at what is left (docs/testing.md)."""
