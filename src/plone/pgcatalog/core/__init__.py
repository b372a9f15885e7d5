"""The catalog itself: what a tool is set to, how it searches, and what it takes in."""
