"""The administration API as a whole: its families, admission and OpenAPI document."""
