"""The pattern tier beside other finders of secrets and identifiers: what each finds, and what that costs."""
