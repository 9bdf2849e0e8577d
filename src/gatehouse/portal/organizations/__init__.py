"""Organizations: the customers of the cloud (docs/portal.md, "Organizations").

(none) -> active              POST; `provisioning_status` provisioning
active -> active              PATCH; a changed plan is pushed to the platform
active -> cancelled           DELETE; final, and no other organization can use the slug

provisioning -> active        the platform has created the tenant and the owner's key
provisioning -> failed        the platform refused it, or was unavailable for ten hours
provisioning -> unknown       no platform is configured (`PLATFORM_URL`)
failed, unknown -> provisioning   POST .../provision
"""
