"""The model registry: risk tier and validation status of the models of an organization (docs/model-registry.md). The
catalog, not the registry, determines which models can be called. If the configuration `registry_enforcement` is `warn`
or `block`, the gateway flags or refuses models that are not validated (`engine/stages/candidates/registry.py`).

An update changes `validation_status` by one permitted transition (`schemas.TRANSITIONS`). `deprecated` is final:

    draft | unclassified -> pending_validation -> in_validation -> validated -> deprecated
    in_validation -> needs_remediation | deprecated
    needs_remediation -> in_validation | validated

Policy rules use `risk_tier` and `validation_status`. A model that is not in the registry has the tier of the
configuration entry `unregistered_model_tier`.
"""
