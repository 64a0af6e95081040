"""
TLS: the broker's keys, the certificates of its clients, and the principals that these give.
"""
