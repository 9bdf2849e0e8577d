"""Fields of model calls that an organization allows although they are refused by default (`engine.fields`,
docs/request-fields.md).

refused <-> allowed     PUT `allowed`
"""
