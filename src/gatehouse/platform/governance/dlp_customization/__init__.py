"""What an organization changes about the pattern tier (decisions of the contract: DLP): built-in patterns that it does
not want (suppressions), and patterns of its own (custom patterns).

    in force <-> suppressed      POST and DELETE of a suppression; a compliance bundle may keep a pattern in force
    enabled  <-> disabled        `enabled` of a custom pattern
    any       -> removed         DELETE
"""
