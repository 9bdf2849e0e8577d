"""Model access rules: the models that a group's members may or may not use (docs/model-access.md).

    created -> deleted     DELETE, or with its group

A DENY in any of a user's groups wins. An ALLOW in one group grants a model whose catalog entry is `restricted`. Rules
name models as calls do: `provider/model-id`. A rule stays when its model leaves the catalog, and applies again if the
model returns.
"""
