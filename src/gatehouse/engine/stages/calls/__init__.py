"""Stages that decide about the call: its texts, its budget, its cached answer and its record."""
