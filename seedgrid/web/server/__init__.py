"""What the web server adds to Gradio."""
