"""Stages that decide about the call: its texts, budget, cache and record."""
