"""What people have set up for themselves: models, theme, and their picture (reference 2, User preferences).

    none   -> stored     PUT; what was never set has its default
    none  <-> picture    PATCH and DELETE of the avatar, by oneself; PATCH by an administrator

With the user go both. A picture is seen by whoever calls for the same organization.
"""
