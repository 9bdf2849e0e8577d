"""The portal's connection to the platform: its API, its keys and its OpenID provider."""
