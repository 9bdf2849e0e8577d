"""Model access: which models a group's members may use, and which not (reference 2, Groups and model access).

    made -> removed     DELETE, or with its group

A DENY in any of a user's groups wins; an ALLOW in one opens a model whose catalog entry is `restricted`. Rules name
models as calls do, `provider/model-id`, and outlive the catalog's entry: one that comes back is denied as before.
"""
