"""
Credentials of SCRAM and of delegation tokens.
"""
