"""Programs that check the catalog for longer, or from further outside, than tests do; chores of the Makefile start them."""
