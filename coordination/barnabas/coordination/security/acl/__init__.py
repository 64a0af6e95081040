"""
Who may do what: access control lists and the authorizer that goes by them.
"""
