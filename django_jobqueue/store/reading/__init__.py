"""Reads jobs for people and programs; nothing here changes a row."""
