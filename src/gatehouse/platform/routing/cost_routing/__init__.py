"""Cost routing: which model answers what names none, what a call may cost, who stands in when a provider fails
(reference 3, Cost routing).

A policy is the organization's default, or that of groups; of each there is one enabled. `engine.routing` decides by
them, for requests and for `simulate` alike. Without a policy `auto` is the catalog's default model.
"""
