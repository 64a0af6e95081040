"""
Share groups (KIP-932): the records of a partition that members acquire and acknowledge one by one.
"""
