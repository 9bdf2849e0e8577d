"""The page `/docs`."""
