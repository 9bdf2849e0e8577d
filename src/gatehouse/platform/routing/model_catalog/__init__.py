"""The model catalog: the models that can be called, and their prices (docs/providers.md).

    active <-> inactive     `is_active`; requests cannot use an inactive entry
    any     -> switched off by the kill switch, which is independent of `is_active`

Prices are decimal USD per token; null means unknown. At most one entry of an organization is the default.
"""
