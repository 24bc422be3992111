"""The data that decides a picture: seeds, prompts, recipes, requests, plans. Imports no torch."""
