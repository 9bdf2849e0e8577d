"""The kill switch: stops a model, or all of a provider's, at once (reference 3, Kill switch; decisions 7).

    enabled  <-> disabled     POST disable (with a reason), POST enable; for one model, or for a provider's at once

The state is each model's own. Switching a provider off switches off the models that it has in the catalog at that
moment: one that is added later is on, and one that is switched on again alone stays on. Disabling a second time keeps
the first moment and takes the newer reason. The answer comes when every live worker has confirmed, or names those
that have not; from then on no new request to the model leaves a confirmed worker.
"""
