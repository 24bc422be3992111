"""What a picture is: seeds, prompts, recipes, requests, plans. No input or output, no torch."""
