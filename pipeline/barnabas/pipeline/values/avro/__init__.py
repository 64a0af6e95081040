"""
Avro: from the values of one schema to a column of Arrow, by array operations over all of them.
"""
