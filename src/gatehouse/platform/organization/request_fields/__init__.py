"""Fields of model calls that are refused by default and that an organization allows (`engine.fields`,
docs/request-fields.md).

refused <-> allowed     PUT `allowed`
"""
