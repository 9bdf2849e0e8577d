"""Values in the forms that vendors, countries and tools publish, made up, in the surroundings people write them in.

`tokens` are secrets with a form of their own, `named` those that only the name before them tells, `keywords` passwords
in the notations of languages and files, `persons` what countries issue, `everyday` phone numbers, dates, cards,
accounts and addresses of many countries. `measure` counts which of them are found.
Everything follows from a seed.
"""
