"""
What a broker does with its log directories: it owns them, or only shows them.
"""
