"""A project with one of everything that can be declared."""
