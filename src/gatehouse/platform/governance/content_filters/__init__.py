"""Content filters: what an organization, or one of its groups, will not have talked about, and what it tells every
model (reference 3, Content filter).

    enabled <-> disabled     `enabled`; a disabled filter is as good as absent
    any      -> removed      DELETE; a group's filters go with it

Looked at in ascending `priority`, of equals the oldest first. The first `keyword_block` or `topic_block` that matches
refuses the request, before any DLP; all `custom_instruction` texts are put before the system prompt.
"""
