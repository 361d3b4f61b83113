"""What objects that hold a handle of the library have in common."""


class Handle:
    """Closed at the end of a with block, at the latest when it dies. `close` may be called again and again."""
    _handle = None

    def close(self):
        raise NotImplementedError

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()
