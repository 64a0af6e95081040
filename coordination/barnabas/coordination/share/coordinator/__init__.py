"""
The share coordinator: what groups did with records, kept in ``__share_group_state`` (KIP-932).
"""
