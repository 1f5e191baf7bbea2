"""Reads log, tables and data of a workspace, and says what is wrong. Shares no code with Servo."""
