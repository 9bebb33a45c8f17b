"""Engines: each executes the same passes on its own arrays."""
