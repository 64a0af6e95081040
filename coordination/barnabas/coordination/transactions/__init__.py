"""
Transactions: the states of a transactional id, and the changes from one to the next.
"""
