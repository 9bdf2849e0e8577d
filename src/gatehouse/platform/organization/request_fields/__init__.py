"""Which fields of model calls an organization allows that are refused by default (`engine.fields`).

refused <-> allowed     PUT `allowed`
"""
