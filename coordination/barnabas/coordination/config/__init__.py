"""
Options of coordinators and of groups.
"""
