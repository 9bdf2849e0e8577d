"""Local servers that answer as a vendor does, and check what they are asked by the vendor's own models."""
