"""Measures the quality and the speed of detection with labelled texts."""
