"""Made-up texts for the semantic heads, all written for this project: attacks, and harmless texts that look like them.

Each module has one generator a kind of text. A generator takes a `random.Random` and yields one text; `pick` and the
rest of `words.py` fill the templates.
"""
