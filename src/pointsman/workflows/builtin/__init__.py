"""Built-in workflows: shipped with the product, listed with the saved ones, read-only; they can be run, called and
cloned."""
