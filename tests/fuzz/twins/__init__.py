"""What is in both languages, by subject: random input, and what Python makes of it."""
