"""An organization's settings on one page (reference 2, Organization settings): its own fields, and what the families
beside this one keep. What is theirs is set by their rules and told by their audit actions."""
