"""Runs the functions of a project, one task at a time: `python -m servo.runner`.

A supervisor starts it, sends it requests as frames over a socket, and reads what becomes of them. It does
everything that must not depend on user code; this package does what needs the project imported. Until that
happens it uses nothing but the standard library, and little of it.
"""
