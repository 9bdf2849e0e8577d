"""Organizations: who uses the cloud (reference 2, Organization).

(none) -> active              POST; `provisioning_status` provisioning
active -> active              PATCH; a change of plan is pushed to the platform
active -> cancelled           DELETE; final, and the slug stays taken

provisioning -> active        the platform has its tenant, and the owner's key
provisioning -> failed        the platform refused it, or could not be asked for ten hours
provisioning -> unknown       there is no platform to ask (`PLATFORM_URL`)
failed, unknown -> provisioning   POST .../provision
"""
