"""Generates values in the forms that vendors, countries and tools publish, in the texts in which people write them.

`tokens` has secrets with their own form, `named` has secrets that are only recognized by the name before them,
`keywords` has passwords in the notations of programming languages and file formats, `persons` has numbers that
countries issue, and `everyday` has phone numbers, dates, cards, accounts and addresses of many countries. `measure`
counts the values that are found. All values depend only on a seed."""
