"""Django's own tests of its Tasks framework, run against our backend.

They are not part of this repository: they are taken from the source distribution of
Django, which pip puts into ``.cache`` (``make conformance``).
"""
