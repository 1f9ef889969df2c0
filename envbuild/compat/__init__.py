"""What goes together: facts with their sources, and the rules over them."""
