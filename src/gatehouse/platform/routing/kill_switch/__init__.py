"""The kill switch: stops a model, or all of a provider's, at once (reference 3, Kill switch; decisions 7).

    enabled  <-> disabled     POST disable (with a reason), POST enable; for one model, or for a provider's at once

Each model has a state of its own, and so has each provider. A provider's covers all of its models, those that are added
later too, also while it has none; it ends only when the provider is released, which releases its models with it.
Disabling a second time keeps the first moment and takes the newer reason. The answer comes when every live worker has
confirmed, or names those that have not; from then on no new request to the model leaves a confirmed worker.
"""
