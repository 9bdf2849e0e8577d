"""The model registry: how risky a model is to this organization, and how far its validation is (reference 3, Model
registry entry). It says nothing about whether a model can be called: that is the catalog's affair.

`validation_status` moves by update, one step at a time (`states.py`); `deprecated` is its end:

    draft | unclassified -> pending_validation -> in_validation -> validated -> deprecated
    in_validation -> needs_remediation | deprecated
    needs_remediation -> in_validation | validated

Policy rules judge by `risk_tier` and `validation_status`; a model that is not in the registry has the tier of the
configuration entry `unregistered_model_tier`.
"""
