"""
The sentences.

Each module makes sentences of the facts that one module of ``explain`` found. They are short, and
have the numbers that were compared: exact ones, and those of settings in units as well.
"""
