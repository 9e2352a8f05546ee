"""What operators do with what is selected: asked, confirmed, done, written down."""
