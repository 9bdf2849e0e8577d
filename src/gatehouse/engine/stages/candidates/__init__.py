"""Stages that decide about each candidate: routing, model access, switches and rules."""
