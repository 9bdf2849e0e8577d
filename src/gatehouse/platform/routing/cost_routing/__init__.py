"""Cost routing: policies that choose the model for `auto`, cap the cost of a call, and define fallbacks
(docs/cost-routing.md).

A policy is the organization's default, or that of groups; at most one of each is enabled. `engine.routing` applies them
to requests and to `simulate` alike. Without a policy, `auto` is the catalog's default model.
"""
