"""Generates texts for the semantic heads: attacks, and harmless texts that are similar to attacks. All were written for
this project.

Each module has one function for each kind of text. It takes a `random.Random` and returns one text. The functions in
`words.py` fill the templates.
"""
