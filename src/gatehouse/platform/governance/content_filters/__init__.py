"""Content filters: keywords and topics that an organization or one of its groups blocks, and instructions that it adds
to every prompt (docs/content-filters.md).

    enabled <-> disabled     `enabled`; a disabled filter has no effect
    any      -> removed      DELETE; deleting a group deletes its filters

Filters are evaluated in ascending `priority`; filters of equal priority by age, oldest first. The first `keyword_block`
or `topic_block` that matches refuses the request, before DLP. All `custom_instruction` texts are prepended to the
system prompt.
"""
