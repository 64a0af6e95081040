"""
The transaction coordinator, and the way from a producer's request to it.
"""
