"""
The metadata of the cluster: an image, and the records that change it.
"""
