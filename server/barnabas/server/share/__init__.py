"""
Share groups (KIP-932): fetches, acknowledgements, and the coordinator that keeps their states.
"""
