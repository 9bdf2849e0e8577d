"""The credentials of a provider, each with a label of its own (docs/providers.md).

    active    -> draining   used only if no active one is available
    active    -> disabled   never used
    any       -> active     used in turn with the others

The credential with the label `default` is the one that `PUT /api/admin/providers/{provider_id}/credentials` sets. It is
stored in the provider's row; the others have rows of their own. At least one credential remains in use. To stop all
calls, disable the provider, or remove all of its credentials.
"""
