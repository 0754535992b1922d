"""Facts of an ONNX graph, computed at build so that the runtime needs no ``onnx``."""
