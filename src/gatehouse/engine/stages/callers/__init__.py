"""Stages that decide about the caller, before the body is decoded."""
