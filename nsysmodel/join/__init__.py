"""Which kernel is which op of the model: vocabulary, steps, layers, alignment."""
