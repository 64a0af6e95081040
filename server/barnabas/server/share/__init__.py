"""
Share groups (KIP-932): records that the members of a group acquire and acknowledge one by one.
"""
