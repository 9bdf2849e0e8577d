"""Texts that contain JSON: a check whether a text is JSON in bounded steps, and replacements that keep the JSON
valid."""
