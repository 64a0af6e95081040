"""
SASL: mechanisms, and the order in which a client has to use them (Kafka
``SaslServerAuthenticator``).
"""
