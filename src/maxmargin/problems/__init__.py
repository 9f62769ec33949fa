"""What is minimised: losses, features, the Gram matrix, and the problems made of them."""
