"""Work in chunks: how far it is, and the buttons that steer it."""
