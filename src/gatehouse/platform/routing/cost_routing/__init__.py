"""Cost routing: policies that choose the model for `auto`, cap the cost of a call, and define fallbacks
(docs/cost-routing.md).

A policy without groups is the organization's default. At most one default, and one policy of each group, is enabled.
`engine.routing` applies them to requests and to `simulate` alike. Without a policy, `auto` is the catalog's default
model.
"""
