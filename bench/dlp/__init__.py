"""How well the pattern tier finds what it should, over labelled texts."""
