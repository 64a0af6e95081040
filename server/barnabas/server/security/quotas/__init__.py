"""
How much clients may do: rates, the quotas that limit them, and the time to wait (KIP-13).
"""
