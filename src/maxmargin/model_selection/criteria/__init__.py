"""What one fit says about the error on new rows."""
