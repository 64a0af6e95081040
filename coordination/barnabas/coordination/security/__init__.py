"""
Principals, access control lists and credentials, as the metadata of the cluster has them.
"""
