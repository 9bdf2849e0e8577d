"""Policy rules: conditions in CEL and their evaluation."""
