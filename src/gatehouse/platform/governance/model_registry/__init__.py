"""The model registry: how risky a model is to this organization, and how far its validation is (reference 3, Model
registry entry). Whether a model is there to be called is the catalog's affair; where the configuration
`registry_enforcement` asks for it, the gateway warns of, or refuses, what the registry does not hold as validated
(`engine/stages/registry.py`).

`validation_status` moves by update, one step at a time (`states.py`); `deprecated` is its end:

    draft | unclassified -> pending_validation -> in_validation -> validated -> deprecated
    in_validation -> needs_remediation | deprecated
    needs_remediation -> in_validation | validated

Policy rules judge by `risk_tier` and `validation_status`; a model that is not in the registry has the tier of the
configuration entry `unregistered_model_tier`.
"""
