"""Stages that decide about each candidate: catalog entry, access, switches and rules."""
