"""What the catalog knows about its own searches."""
