"""Random histories of several writers, driven through the engine and through a plain model, and compared."""
