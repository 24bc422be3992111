"""The web page and its server: the only package that imports gradio."""
