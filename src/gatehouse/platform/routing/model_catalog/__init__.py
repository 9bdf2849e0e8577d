"""The model catalog: which models of which provider can be called, and for how much (reference 3, Model catalog entry).

    active <-> inactive     `is_active`; an inactive entry is as good as absent to a request
    any     -> switched off by the kill switch, which is independent of `is_active`

Prices are decimal, USD a token, null where unknown. One entry of an organization at most is the default.
"""
