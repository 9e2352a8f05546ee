"""The page of what operators did."""
