"""
Who a client is: TLS, SASL, and the principals that they give.
"""
