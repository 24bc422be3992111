"""The page: the only room, beside app.py, that knows gradio."""
