"""Conversion of parts of a call between dialects: tool calls, images and names."""
