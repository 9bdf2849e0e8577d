"""A user's preferences: models, theme and picture (docs/preferences.md).

    none   -> stored     PUT; preferences that were never set have their defaults
    none  <-> picture    PATCH and DELETE of the avatar by the user; PATCH by an administrator

Preferences and picture are deleted with the user. Every caller of the same organization can read a picture.
"""
