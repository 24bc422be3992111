"""A file field that hands over where its files lie, and leaves nothing behind.

Gradio's own makes an empty file beside each that is named in an event, however often, and never
deletes one: a stranger who names an upload five hundred times leaves five hundred.
"""

import gradio as gr
from gradio.data_classes import FileData, ListFiles


def paths_only(field: gr.File) -> gr.File:
    """Return the field, which hands over paths from now on: a list, or one if it takes one file."""
    is_single = field.file_count == "single"

    def paths(payload: ListFiles | FileData | None) -> list[str] | str | None:
        if payload is None:
            return None
        files = payload.root if isinstance(payload, ListFiles) else [payload]
        named = list(dict.fromkeys(file.path for file in files))
        return named[0] if is_single and named else named

    field.preprocess = paths  # Gradio asks the object
    return field
