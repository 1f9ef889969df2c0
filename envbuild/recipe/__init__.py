"""What is wanted: the recipe's model and its reader."""
