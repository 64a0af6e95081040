"""
What groups of the protocols after the classic one have in common: KIP-848, KIP-932, KIP-1071.

Three epochs order everything. The *group epoch* grows whenever something has changed that decides
assignments. The *assignment epoch* is the group epoch that the target assignment was made for. The
*member epoch* is the assignment epoch that a member has reached::

    subscriptions, topics --> group epoch --> target assignment --> what each member has
"""
