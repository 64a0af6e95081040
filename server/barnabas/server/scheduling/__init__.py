"""
How the event loop's time and the threads are shared.
"""
