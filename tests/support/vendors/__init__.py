"""Local servers that answer like a vendor, and check requests with the types of the vendor's library."""
