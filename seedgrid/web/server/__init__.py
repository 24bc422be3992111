"""The page's server: the routes and middleware that are added to Gradio's."""
