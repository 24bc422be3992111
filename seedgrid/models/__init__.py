"""What a model is: its files, its card, its family. No torch but to make a scheduler."""
