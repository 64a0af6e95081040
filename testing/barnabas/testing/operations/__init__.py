"""
The operations of a test on a broker, which run on its event loop.

Each is a function of a module whose arguments and result can be pickled.
"""
