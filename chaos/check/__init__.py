"""Reads the log, the tables and the data of a workspace, and says what is wrong. Shares no code with Servo."""
