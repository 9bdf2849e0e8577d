"""Texts that contain JSON: a bounded grammar, and replacements that keep the JSON valid."""
