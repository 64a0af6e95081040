"""
Transactions: what a coordinator knows of each transactional id, and what it makes of requests.
"""
